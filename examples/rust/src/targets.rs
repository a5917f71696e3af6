//! Addresses in proofs: `target` and `same-target` of vectors/holder-proofs.md.

/// The claim `htu`: the public address of the platform and the path of the call.
pub fn of(public_url: &str, path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or("");
    format!("{}{path}", public_url.trim_end_matches('/'))
}

/// Whether two addresses are the same target, even if they are spelled differently.
pub fn is_same(one: &str, other: &str) -> bool {
    one == other || normal(one).is_some_and(|form| Some(form) == normal(other))
}

fn normal(address: &str) -> Option<String> {
    if !address.bytes().all(|one| one.is_ascii_graphic() && one != b'\\') {
        return None;
    }
    let (scheme, rest) = address.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let rest = rest.split(['?', '#']).next()?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.rfind(':').filter(|&at| !authority[at..].contains(']')) {
        Some(at) => (&authority[..at], &authority[at + 1..]),
        None => (authority, ""),
    };
    let is_literal = host.starts_with('[') && host.ends_with(']');
    if host.is_empty() || host.contains('@') || (host.contains([':', '[', ']']) && !is_literal) {
        return None;
    }
    let port = if port.is_empty() { default_port } else { number(port)? };
    let port = if port == default_port { String::new() } else { format!(":{port}") };
    let path = without_dots(&unescape(path));
    Some(format!("{scheme}://{}{port}{path}", host.to_ascii_lowercase()))
}

fn number(port: &str) -> Option<u16> {
    port.bytes().all(|one| one.is_ascii_digit()).then(|| port.parse().ok()).flatten()
}

/// Undoes the escapes of unreserved characters, and writes other ones in upper case.
fn unescape(path: &str) -> String {
    let mut parts = path.split('%');
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let code = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) if code.is_ascii_alphanumeric() || b"-._~".contains(&code) => out.push(code.into()),
            Some(_) => out.push_str(&format!("%{}", part[..2].to_ascii_uppercase())),
            None => out.push('%'),
        }
        out.push_str(if code.is_some() { &part[2..] } else { part });
    }
    out
}

/// RFC 3986 section 5.2.4.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (index, part) in parts.iter().enumerate() {
        let is_dots = [".", ".."].contains(part);
        if *part == ".." {
            kept.pop();
        }
        if !is_dots {
            kept.push(part);
        } else if index + 1 == parts.len() {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}
