//! The connection to a platform: a proof for each attempt, deadlines, retries, reasons.

use crate::{keys::Keypair, proof, targets};
use std::{env, path::Path, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::{Interceptor, interceptor::InterceptedService};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, GrpcMethod, Request, Response, Status, Streaming};
use tonic_types::StatusExt;

const DOMAIN: &str = "depute.dev";
const ATTEMPT: Duration = Duration::from_secs(10);
const RETRY_FOR: Duration = Duration::from_secs(30);
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Any error of a program.
pub type Failure = Box<dyn std::error::Error>;
/// The connection through which a generated client makes its calls.
pub type Connection = InterceptedService<Channel, Credentials>;

/// The value of an environment variable; an empty one counts as absent.
pub fn setting(name: &str, otherwise: &str) -> String {
    env::var(name).ok().filter(|value| !value.is_empty()).unwrap_or_else(|| otherwise.to_owned())
}

/// A platform, and the key that names the caller.
pub struct Platform {
    pub key: Arc<Keypair>,
    url: String,
    channel: Channel,
}

impl Platform {
    /// Connects as DEPUTE_URL and DEPUTE_KEY say.
    pub fn from_settings(key_file: &str) -> Result<Self, Failure> {
        let key = Keypair::of(Path::new(&setting("DEPUTE_KEY", key_file)))?;
        Self::new(&setting("DEPUTE_URL", "http://127.0.0.1:8080"), key)
    }

    /// Connects to a public URL: http is plaintext, https is TLS. The key names the caller.
    pub fn new(url: &str, key: Keypair) -> Result<Self, Failure> {
        let mut endpoint = Endpoint::from_shared(url.to_owned())?
            .http2_keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(10));
        if url.starts_with("https:") {
            endpoint = endpoint.tls_config(ClientTlsConfig::new().with_native_roots())?;
        }
        Ok(Self { key: Arc::new(key), url: url.to_owned(), channel: endpoint.connect_lazy() })
    }

    /// Calls that the key alone proves.
    pub fn connection(&self) -> Connection {
        self.connection_with(Grant::Key)
    }

    /// Calls with other credentials.
    pub fn connection_with(&self, grant: Grant) -> Connection {
        let credentials = Credentials { key: self.key.clone(), url: self.url.clone(), grant };
        InterceptedService::new(self.channel.clone(), credentials)
    }
}

/// The credentials of a call.
#[derive(Clone)]
pub enum Grant {
    Key,
    /// A token, and the key of its holder.
    Token(String),
    /// A secret; an empty one for no credentials.
    Secret(String),
}

/// Adds the headers of a call. tonic asks for the headers of each attempt, and does not repeat attempts by itself.
#[derive(Clone)]
pub struct Credentials {
    key: Arc<Keypair>,
    url: String,
    grant: Grant,
}

impl Interceptor for Credentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let token = match &self.grant {
            Grant::Secret(secret) if secret.is_empty() => return Ok(request),
            Grant::Secret(secret) => {
                request.metadata_mut().insert("authorization", ascii(&format!("Bearer {secret}"))?);
                return Ok(request);
            }
            Grant::Token(token) => Some(token.as_str()),
            Grant::Key => None,
        };
        let method = request.extensions().get::<GrpcMethod>();
        let method = method.ok_or_else(|| Status::internal("a call without a method"))?;
        let htu = targets::of(&self.url, &format!("/{}/{}", method.service(), method.method()));
        let proof = proof::create(&self.key, "POST", &htu, token);
        request.metadata_mut().insert("dpop", ascii(&proof)?);
        if let Some(token) = token {
            request.metadata_mut().insert("authorization", ascii(&format!("DPoP {token}"))?);
        }
        Ok(request)
    }
}

fn ascii(text: &str) -> Result<MetadataValue<Ascii>, Status> {
    text.parse().map_err(|_| Status::unauthenticated("the credentials are not ASCII"))
}

/// Makes a unary call, and repeats it while the connection is broken. The request keeps its request id.
pub async fn retry<Q: Clone, A>(
    request: &Q,
    attempt: impl AsyncFn(Request<Q>) -> Result<Response<A>, Status>,
) -> Result<A, Status> {
    let until = Instant::now() + RETRY_FOR;
    let mut wait = FIRST_WAIT;
    loop {
        let mut next = Request::new(request.clone());
        next.set_timeout(ATTEMPT);
        match attempt(next).await {
            Ok(response) => return Ok(response.into_inner()),
            Err(status) if !is_retryable(&status) || Instant::now() > until => return Err(status),
            Err(_) => sleep(wait).await,
        }
        wait = LONGEST_WAIT.min(2 * wait);
    }
}

/// Reads a stream, and opens the stream again when it ends or breaks. `each` returns whether to continue.
pub async fn follow<A>(
    mut open: impl AsyncFnMut() -> Result<Response<Streaming<A>>, Status>,
    mut each: impl AsyncFnMut(A) -> Result<bool, Status>,
) -> Result<(), Status> {
    let mut wait = FIRST_WAIT;
    loop {
        let broken = match open().await {
            Err(status) => Some(status),
            Ok(response) => {
                let mut stream = response.into_inner();
                loop {
                    match stream.message().await {
                        Ok(Some(answer)) => {
                            wait = FIRST_WAIT;
                            if !each(answer).await? {
                                return Ok(());
                            }
                        }
                        Ok(None) => break None,
                        Err(status) => break Some(status),
                    }
                }
            }
        };
        if let Some(status) = broken.filter(|status| !is_retryable(status)) {
            return Err(status);
        }
        sleep(wait).await;
        wait = LONGEST_WAIT.min(2 * wait);
    }
}

/// Whether a new attempt may succeed: the platform is unavailable, or did not answer at all.
pub fn is_retryable(status: &Status) -> bool {
    let is_broken = matches!(
        status.code(),
        Code::Internal | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded
    );
    status.code() == Code::Unavailable || (is_broken && reason_of(status).is_empty())
}

/// The platform's reason of an error; empty for any other error.
pub fn reason_of(status: &Status) -> String {
    let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN);
    info.map_or_else(String::new, |info| info.reason)
}
