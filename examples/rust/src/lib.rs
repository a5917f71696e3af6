//! Helpers of the worker and the delegator.

/// The contracts, as build.rs generates them.
#[allow(clippy::all)]
pub mod contracts {
    include!(concat!(env!("OUT_DIR"), "/contracts.rs"));
}

pub mod authority;
pub mod documents;
pub mod events;
pub mod json;
pub mod keys;
pub mod patterns;
pub mod platform;
pub mod proof;
pub mod refusal;
pub mod registration;
pub mod sentiment;
pub mod targets;
pub mod token;
pub mod token_form;
pub mod verifier;
pub mod work;
