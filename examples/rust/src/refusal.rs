use std::fmt;

/// A token, proof or text that the pages under vectors/ refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The denial in lower case, such as `malformed_token`.
    pub denial: &'static str,
    /// The member at fault; empty where the page names none.
    pub fault: &'static str,
}

impl Refusal {
    pub const fn new(denial: &'static str, fault: &'static str) -> Self {
        Self { denial, fault }
    }

    /// Refuses unless a condition holds.
    pub fn unless(holds: bool, denial: &'static str, fault: &'static str) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::new(denial, fault)) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.denial, self.fault)
    }
}

impl std::error::Error for Refusal {}
