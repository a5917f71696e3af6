//! Strict JSON and its canonical form (RFC 8785): vectors/canonical-json.md.

use crate::refusal::Refusal;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

const MAX_NESTING: usize = 64;
const NO_FORM: Refusal = Refusal::new("no_canonical_form", "");

/// Reads a text. Numbers become doubles. Refuses invalid JSON, and values without a canonical form.
pub fn parse(text: &str) -> Result<Value, Refusal> {
    let Strict(value) = serde_json::from_str(text).map_err(|_| NO_FORM)?;
    if nesting(&value) > MAX_NESTING { Err(NO_FORM) } else { Ok(value) }
}

/// The number of arrays and objects around the innermost value.
pub fn nesting(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(nesting).max().unwrap_or(0),
        _ => 0,
    }
}

/// A value without repeated members: serde_json itself keeps the last one.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        self.visit_f64(number as f64)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("not finite"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some((name, Strict(member))) = entries.next_entry::<String, Strict>()? {
            if members.insert(name, member).is_some() {
                return Err(A::Error::custom("repeated member"));
            }
        }
        Ok(Value::Object(members))
    }
}

/// The canonical text of a value.
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    append(value, &mut out);
    out
}

fn append(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                append(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            out.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                quote(name, out);
                out.push(':');
                append(member, out);
            }
            out.push('}');
        }
        Value::String(text) => quote(text, out),
        // serde_json reads every number as one that has a double.
        Value::Number(number) => out.push_str(&digits(number.as_f64().unwrap_or(f64::NAN))),
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for one in text.chars() {
        match one {
            '"' | '\\' => out.extend(['\\', one]),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..' ' => out.push_str(&format!("\\u{:04x}", u32::from(one))),
            _ => out.push(one),
        }
    }
    out.push('"');
}

/// ECMAScript's Number.prototype.toString. Rust's exponent form has the shortest digits, too.
fn digits(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let form = format!("{:e}", number.abs());
    let (mantissa, exponent) = form.split_once('e').unwrap_or((&form, "0"));
    let digits = mantissa.replace('.', "");
    let n = digits.len() as i32;
    let e = exponent.parse::<i32>().unwrap_or(0) + 1;
    let sign = if number < 0.0 { "-" } else { "" };
    let text = if n <= e && e <= 21 {
        digits + &"0".repeat((e - n) as usize)
    } else if 0 < e && e <= 21 {
        format!("{}.{}", &digits[..e as usize], &digits[e as usize..])
    } else if -6 < e && e <= 0 {
        format!("0.{}{digits}", "0".repeat(-e as usize))
    } else {
        let point = if n == 1 { "" } else { "." };
        let sign = if e > 0 { '+' } else { '-' };
        format!("{}{point}{}e{sign}{}", &digits[..1], &digits[1..], (e - 1).abs())
    };
    format!("{sign}{text}")
}
