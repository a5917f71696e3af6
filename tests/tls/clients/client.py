"""Calls a method of an empty request over gRPC with TLS: client.py ADDRESS CA CERTIFICATE KEY TOKEN METHOD.

Prints the gRPC status and its message. An empty argument leaves the credential out.
"""

import sys

import grpc

address, ca, certificate, key, token, method = sys.argv[1:]


def read(path: str) -> bytes | None:
    if not path:
        return None
    with open(path, "rb") as file:
        return file.read()


credentials = grpc.ssl_channel_credentials(read(ca), read(key), read(certificate))
metadata = [("authorization", f"Bearer {token}")] if token else []
with grpc.secure_channel(address, credentials) as channel:
    call = channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)
    try:
        call(b"", timeout=20, metadata=metadata)
        print("OK")
    except grpc.RpcError as error:
        print(error.code().name, error.details())
