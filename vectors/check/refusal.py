"""The refusal of an input."""


class Refusal(Exception):
    """`reason` is the refusal of a case. `fault` is the place of the fault, if the page defines a place."""

    def __init__(self, reason, fault=None):
        super().__init__(f"{reason}: {fault}")
        self.reason = reason
        self.fault = fault
