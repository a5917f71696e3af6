//! The work of the example: sums of texts by their sentiment, their state and their result.

use crate::contracts::nekte::v1::CapabilityFull;
use serde_json::{Value, json};

const SCORES: [(&str, i32); 6] =
    [("wonderful", 4), ("excellent", 3), ("useful", 2), ("bad", -3), ("broken", -1), ("terrible", -3)];

/// The capability as the registry publishes it.
pub fn capability() -> CapabilityFull {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let input = json!({"type": "object", "properties": {"texts": texts}, "required": ["texts"]});
    let output = json!({
        "type": "object",
        "required": ["count", "positive", "negative"],
        "additionalProperties": {"type": "integer"},
    });
    CapabilityFull {
        id: "sentiment".to_owned(),
        cat: Some("nlp".to_owned()),
        desc: Some("Scores texts.".to_owned()),
        input_schema: Some(input.to_string().into_bytes()),
        output_schema: Some(output.to_string().into_bytes()),
        ..Default::default()
    }
}

/// The texts of an input that fits the capability's schema.
pub fn texts_of(input: &Value) -> Vec<&str> {
    input["texts"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The state after some texts.
#[derive(Clone, Copy, Default)]
pub struct Sums {
    pub count: usize,
    positive: usize,
    negative: usize,
}

impl Sums {
    /// The state of a checkpoint; zero for null.
    pub fn from_checkpoint(checkpoint: &Value) -> Self {
        let number = |name: &str| checkpoint[name].as_f64().unwrap_or(0.0) as usize;
        Self { count: number("count"), positive: number("positive"), negative: number("negative") }
    }

    pub fn add(&mut self, texts: &[&str]) {
        self.count += texts.len();
        self.positive += texts.iter().filter(|text| score(text) > 0).count();
        self.negative += texts.iter().filter(|text| score(text) < 0).count();
    }

    pub fn document(&self) -> Value {
        json!({"count": self.count, "positive": self.positive, "negative": self.negative})
    }
}

fn score(text: &str) -> i32 {
    let lower = text.to_lowercase();
    let words = lower.split(|one: char| !one.is_ascii_lowercase());
    words.filter_map(|word| SCORES.iter().find(|(one, _)| *one == word)).map(|(_, score)| score).sum()
}
