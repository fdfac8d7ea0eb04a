//! The first lines of every call on an endpoint.

/// Runs a body with the state of an endpoint.
macro_rules! on_endpoint {
    ($endpoint:expr, $body:expr) => {{
        // SAFETY: the caller passes an endpoint that is not freed, or NULL.
        let endpoint = unsafe { $endpoint.as_ref() };
        with(endpoint, $body)
    }};
}

/// Runs a body with a connection, which is polled next.
macro_rules! on_connection {
    ($endpoint:expr, $number:expr, $body:expr) => {{
        // SAFETY: the caller passes an endpoint that is not freed, or NULL.
        let endpoint = unsafe { $endpoint.as_ref() };
        with_connection(endpoint, $number, $body)
    }};
}

/// Runs a body that only looks at a connection.
macro_rules! look_at {
    ($endpoint:expr, $number:expr, $body:expr) => {{
        // SAFETY: the caller passes an endpoint that is not freed, or NULL.
        let endpoint = unsafe { $endpoint.as_ref() };
        look(endpoint, $number, $body)
    }};
}
