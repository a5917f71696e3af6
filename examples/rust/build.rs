//! Generates the contracts from the unpacked bundle in `protos/`. It needs no protoc.

use protox::Compiler;
use protox::file::{ChainFileResolver, GoogleFileResolver, IncludeFileResolver};
use std::path::{Path, PathBuf};
use std::{error::Error, fs};

const PROTOS: &str = "protos";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={PROTOS}");
    let mut files = Vec::new();
    find(Path::new(PROTOS), &mut files)
        .map_err(|error| format!("{PROTOS}: {error}; unpack the bundle of contracts there, see README.md"))?;
    // protox has its own copy of google/protobuf. It cannot read the options of extension ranges in the
    // bundle's copy.
    files.retain(|file| !file.starts_with(Path::new(PROTOS).join("google/protobuf")));
    let mut resolver = ChainFileResolver::new();
    resolver.add(GoogleFileResolver::new());
    resolver.add(IncludeFileResolver::new(PROTOS.into()));
    let mut compiler = Compiler::with_file_resolver(resolver);
    let mut set = compiler.include_imports(true).open_files(&files)?.file_descriptor_set();
    // Clients need no rules of validation. The crates prost-types and tonic-types have google's messages.
    set.file.retain(|file| !file.name().starts_with("buf/"));
    tonic_prost_build::configure()
        .build_server(false)
        .disable_comments(["."])
        .extern_path(".google.rpc", "::tonic_types::pb")
        .include_file("contracts.rs")
        .compile_fds(set)?;
    Ok(())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}
