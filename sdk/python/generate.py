"""Writes src/depute/_gen: the platform's contracts for the Python package.

The input is the bundle that `npm run bundle` writes to dist/ at the root of the repository. The output is one set of
descriptors, which the package loads into a descriptor pool of its own. No module named `buf`, `google` or `nekte` is
installed, and no entry of the default pool can collide with another package, such as `protovalidate`.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OUT = HERE / "src" / "depute" / "_gen"
BUNDLES = HERE.parent.parent / "dist"

#: Rules of validation. The platform checks them; the package does not need them.
RULES = "buf/validate/validate.proto"


def generate() -> None:
    """Writes the output, unless a source distribution already contains the output."""
    bundles = sorted(BUNDLES.glob("depute-protos-*.tgz"))
    if not bundles:
        if (OUT / "contracts.binpb").exists():
            return
        raise SystemExit(f"{BUNDLES} has no depute-protos-*.tgz; run `npm run bundle`")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(bundles[-1]) as archive:
            if sys.version_info >= (3, 12):
                archive.extractall(folder, filter="data")
            else:
                archive.extractall(folder)
        raw = compile_protos(Path(folder))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "__init__.py").write_text('"""Generated; see generate.py."""\n')
    (OUT / "contracts.binpb").write_bytes(strip(raw))
    wire, reasons = read_options(raw)
    (OUT / "wire.json").write_text(json.dumps(wire, indent=1, sort_keys=True))
    (OUT / "reasons.py").write_text(reasons_module(reasons))


def compile_protos(root: Path) -> bytes:
    """The serialized FileDescriptorSet of all files below a folder."""
    try:
        from grpc_tools import protoc
    except ImportError:
        raise SystemExit("grpcio-tools is missing; run `python3 -m pip install grpcio-tools`") from None

    files = [str(path.relative_to(root)) for path in root.rglob("*.proto")]
    image = root / "contracts.binpb"
    well_known = str(resources.files("grpc_tools") / "_proto")
    arguments = [
        f"-I{root}",
        f"-I{well_known}",
        "--include_imports",
        f"--descriptor_set_out={image}",
    ]
    if protoc.main(["protoc", *arguments, *sorted(files)]) != 0:
        raise SystemExit("protoc refused the contracts")
    return image.read_bytes()


def strip(raw: bytes) -> bytes:
    """
    The descriptor set without the validation rules, and without options whose extensions are defined in other
    files.
    """
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet.FromString(raw)
    files.DiscardUnknownFields()
    kept = descriptor_pb2.FileDescriptorSet()
    for file in files.file:
        if file.name == RULES:
            continue
        dependencies = [name for name in file.dependency if name != RULES]
        del file.dependency[:]
        file.dependency.extend(dependencies)
        kept.file.append(file)
    return kept.SerializeToString(deterministic=True)


def read_options(raw: bytes) -> tuple[dict[str, Any], dict[str, int]]:
    """
    The names of members in the protocol families' JSON documents, and the reasons of errors with their
    numbers.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(raw).file:
        pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    # A class of this pool knows the extensions of this pool.
    set_class = message_factory.GetMessageClass(
        pool.FindMessageTypeByName("google.protobuf.FileDescriptorSet")
    )
    options = {
        name: pool.FindExtensionByName(f"depute.wire.v1.{name}")
        for name in ("wire_file", "wire_message", "wire_field", "wire_oneof", "wire_enum_value")
    }
    wire: dict[str, Any] = {"files": {}, "inline": [], "fields": {}, "tags": {}, "words": {}}

    def read_message(message: Any, scope: str, file: dict[str, Any]) -> None:
        name = f"{scope}.{message.name}"
        if message.options.Extensions[options["wire_message"]].inline:
            wire["inline"].append(name)
        for oneof in message.oneof_decl:
            option = oneof.options.Extensions[options["wire_oneof"]]
            if option.tag:
                tag = {"tag": option.tag, "inherited": option.inherited}
                wire["tags"][f"{name}.{oneof.name}"] = tag
        for field in message.field:
            option = field.options.Extensions[options["wire_field"]]
            member = option.name or (field.name if file["snake"] else field.json_name)
            entry = {"name": member}
            entry.update(
                {flag: True for flag in ("json", "omit_empty", "extra_members") if getattr(option, flag)}
            )
            if field.HasField("oneof_index"):
                oneof = message.oneof_decl[field.oneof_index]
                if f"{name}.{oneof.name}" in wire["tags"]:
                    word = field.name.upper() if file["upper"] else field.name
                    entry["word"] = option.name or word
            wire["fields"][f"{name}.{field.name}"] = entry
        for nested in message.nested_type:
            read_message(nested, name, file)
        for enum in message.enum_type:
            read_enum(enum, name)

    def read_enum(enum: Any, scope: str) -> None:
        for value in enum.value:
            word = value.options.Extensions[options["wire_enum_value"]].name
            if word:
                wire["words"][f"{scope}.{enum.name}.{value.name}"] = word

    reasons: dict[str, int] = {}
    for file in set_class.FromString(raw).file:
        if file.options.HasExtension(options["wire_file"]):
            option = file.options.Extensions[options["wire_file"]]
            facts = {"snake": option.naming == 2, "upper": option.enum_words == 2}
            wire["files"][file.name] = facts
            for message in file.message_type:
                read_message(message, file.package, facts)
            for enum in file.enum_type:
                read_enum(enum, file.package)
        for enum in file.enum_type:
            if f"{file.package}.{enum.name}" == "depute.errors.v1.ErrorReason":
                reasons = {value.name: value.number for value in enum.value if value.number != 0}
    return wire, reasons


def reasons_module(reasons: dict[str, int]) -> str:
    words = [name.removeprefix("ERROR_REASON_") for name in reasons]
    lines = [
        '"""Generated; see generate.py."""',
        "",
        "from enum import Enum",
        "",
        "",
        "class Reason(str, Enum):",
        '    """Why the platform refused a call. (depute/errors/v1/error_reason.proto)"""',
        "",
        *[f'    {word} = "{word}"' for word in words],
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    generate()
    print(f"written: {', '.join(sorted(path.name for path in OUT.iterdir() if path.is_file()))}")
