//! The C interface has what the Rust core has, name for name: what an application of the core can call, set, read and is
//! told is listed here with its name in C, or with the reason why C does not need it.
//!
//! A public method or a setting that is added to the core needs a row, and with it a decision.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// An item of the core: the line on which its block begins, in which sources, and its members with their names in C. A name
/// that begins with "- " is a reason why there is none.
struct Mirror {
    block: &'static str,
    sources: &'static str,
    members: &'static [(&'static str, &'static str)],
}

const ENDPOINT: &str = "- for endpoints and tests";
const CORE: &str = "../transport/core/src";
const SCHEDULER: &str = "../scheduler/src";

const MIRRORS: &[Mirror] = &[
    Mirror {
        block: "impl Endpoint {",
        sources: CORE,
        members: &[
            ("accept_deferred", "- for decisions that come later; callbacks of C decide at once"),
            ("next_deferred", "- for decisions that come later; callbacks of C decide at once"),
            ("turn_away", "- for decisions that come later; callbacks of C decide at once"),
            ("take_unread", "- programs in C read what there is before they forget a connection"),
            ("new", "hvq_endpoint_new"),
            ("set_server", "hvq_endpoint_set_server"),
            ("handle", "hvq_endpoint_handle"),
            ("on_refused", "hvq_endpoint_refused"),
            ("connect", "hvq_endpoint_connect"),
            ("connect_racing", "- missing: C programs begin over one path and open the others"),
            ("take_race_failures", "- as above"),
            ("first_network_path", "hvq_endpoint_first_network_path"),
            ("connection", "- C names connections by their numbers"),
            ("get", "- C names connections by their numbers"),
            ("handles", "hvq_endpoint_connections"),
            ("stats", "hvq_endpoint_get_statistics"),
            ("knowledge", "- C programs keep endpoints for as long as they keep knowledge"),
            ("add_knowledge", "- as above"),
            ("on_stray", "- for servers with workers, which the C API has none of"),
            ("take_strays", "- as above"),
            ("recycle", "- the next poll gives the memory back"),
            ("poll", "hvq_endpoint_poll"),
            ("take_stream_events", "- hvq_endpoint_poll returns them one by one"),
        ],
    },
    Mirror {
        block: "impl Connection {",
        sources: CORE,
        members: &[
            ("change_stream_limits", "- limits of C are those of the configuration"),
            ("datagram_space", "- the queue of datagrams is seen by hvq_connection_info alone"),
            ("export_keying_material", "- the C interface exports no keying material"),
            ("read_unordered", "- streams of C are read in order"),
            ("audit", ENDPOINT),
            ("client", ENDPOINT),
            ("present_token", "hvq_client_options.token"),
            ("server", ENDPOINT),
            ("is_address_proven", ENDPOINT),
            ("has_authenticated", ENDPOINT),
            ("close", "hvq_connection_close"),
            ("open", "hvq_stream_open"),
            ("accept", "hvq_stream_accept"),
            ("write", "hvq_stream_write"),
            ("write_bytes", "hvq_stream_write_owned"),
            ("writable", "- hvq_stream_write takes what there is room for"),
            ("meter", "- for servers that limit groups of streams, as WebTransport does here"),
            ("charge_memory", "- for servers that hold parts of messages, as HTTP/3 does here"),
            ("discharge_memory", "- as above"),
            ("held_memory", "- as above"),
            ("end_message", "hvq_stream_end_message"),
            ("finish", "hvq_stream_finish"),
            ("reset", "hvq_stream_reset"),
            ("read", "hvq_stream_read_chunk"),
            ("stop", "hvq_stream_stop"),
            ("set_priority", "hvq_stream_set_priority"),
            ("send_datagram", "hvq_datagram_send"),
            ("receive_datagram", "hvq_datagram_receive"),
            ("expect_datagrams", "- what hvq_datagram_send refuses has the same effect"),
            ("max_datagram_size", "hvq_connection_info.max_datagram_size"),
            ("later_max_datagram_size", "- a datagram that is refused may be tried again"),
            ("open_path", "hvq_path_open"),
            ("abandon_path", "hvq_path_abandon"),
            ("set_path_status", "hvq_path_set_status"),
            ("set_hints", "hvq_path_set_hints"),
            ("peer_hints", "hvq_path_get_peer_hints"),
            ("set_congestion", "hvq_path_set_congestion"),
            ("path_ids", "hvq_path_list"),
            ("is_early_data", "hvq_connection_info.is_early_data"),
            ("early_data", "hvq_connection_info.early_data"),
            ("is_early_stream", "hvq_stream_is_early"),
            ("is_resumed", "hvq_connection_info.is_resumed"),
            ("verify_again", "hvq_connection_verify_again"),
            ("update_keys", "hvq_connection_update_keys"),
            ("key_updates", "hvq_connection_info.key_updates"),
            ("migrate", "hvq_path_migrate"),
            ("pending_validations", "hvq_connection_info.pending_validations"),
            ("poll", "hvq_endpoint_poll"),
            ("role", "hvq_connection_info.is_server"),
            ("lifecycle", "hvq_connection_info.state"),
            ("is_multipath", "hvq_connection_info.is_multipath"),
            ("set_tracer", "- hvq_transport_config has log and qlog_folder"),
            ("alpn", "hvq_connection_alpn"),
            ("server_name", "hvq_connection_server_name"),
            ("peer_certificates", "hvq_connection_certificate"),
            ("peer_parameters", "hvq_connection_get_peer"),
            ("set_path_keep_alive", "hvq_path_set_keep_alive"),
            ("ping_path", "- hvq_path_set_keep_alive has a path asked, too"),
            ("set_dscp", "hvq_path_set_dscp"),
            ("rotate_connection_id", "hvq_path_rotate_connection_id"),
            ("retire_connection_ids", "hvq_path_retire_connection_ids"),
            ("receive", ENDPOINT),
            ("on_possible_reset", ENDPOINT),
            ("on_refused", "hvq_endpoint_refused"),
            ("stats", "hvq_connection_list_frames"),
            ("path_stats", "hvq_path_get_statistics"),
            ("version", "hvq_connection_info.version"),
        ],
    },
    Mirror {
        block: "settings! { TransportConfig:",
        sources: CORE,
        members: &[
            ("scheduler", "hvq_transport_config.scheduler"),
            ("congestion", "hvq_transport_config.congestion"),
            ("versions", "hvq_transport_config.versions"),
            ("greasing", "hvq_transport_config.grease"),
            ("multipath", "hvq_transport_config.paths"),
            ("migration", "hvq_transport_config.migration"),
            ("idle_timeout", "hvq_transport_config.idle_timeout"),
            ("handshake_timeout", "hvq_transport_config.handshake_timeout"),
            ("keep_alive", "hvq_transport_config.keep_alive"),
            ("path_keep_alive", "hvq_transport_config.path_keep_alive"),
            ("path_keep_alive_limit", "hvq_transport_config.path_keep_alive_limit"),
            ("spin_bit", "hvq_transport_config.spin_bit"),
            ("rotation", "hvq_transport_config.rotation_packets"),
            ("preferred_addresses", "hvq_transport_config.preferred_ipv4"),
            ("preference", "hvq_transport_config.follow_preferred"),
            ("codepoints", "hvq_channel.dscp"),
            ("streams", "- the rows of StreamLimits"),
            ("memory", "- the default: the C API bounds streams and datagrams each"),
            ("max_datagram_frame", "hvq_transport_config.max_datagram_frame"),
            ("datagram_queue", "hvq_transport_config.datagram_queue"),
            ("datagram_size", "hvq_transport_config.max_datagram_size"),
            ("max_udp_payload", "hvq_transport_config.max_udp_payload"),
            ("acknowledge", "hvq_transport_config.ack_threshold"),
            ("ack_requests", "hvq_transport_config.ack_requests"),
            ("ecn", "hvq_transport_config.ecn"),
            ("validation_timeout", "hvq_transport_config.validation_timeout"),
            ("channels", "hvq_transport_config.channels"),
            ("path_hints", "hvq_transport_config.path_hints"),
            ("partial_delivery", "- the default, off: streams are reset whole in C"),
            ("queue_bound", "- the default: off is for models of other transports in experiments"),
            ("path_memory", "hvq_transport_config.path_memory"),
            ("opening_datagrams", "hvq_transport_config.opening_datagrams"),
            ("segments", "hvq_transport_config.segments"),
            ("aead_limits", "hvq_transport_config.aead_confidentiality"),
            ("last_packet_number", "- for tests of the core"),
            ("tracer", "hvq_transport_config.log"),
        ],
    },
    Mirror {
        block: "pub struct StreamLimits {",
        sources: CORE,
        members: &[
            ("max_data", "hvq_transport_config.max_data"),
            ("stream_data_bidi_local", "hvq_transport_config.stream_data_bidi_local"),
            ("stream_data_bidi_remote", "hvq_transport_config.stream_data_bidi_remote"),
            ("stream_data_uni", "hvq_transport_config.stream_data_uni"),
            ("max_streams_bidi", "hvq_transport_config.max_streams_bidi"),
            ("max_streams_uni", "hvq_transport_config.max_streams_uni"),
            ("max_window", "hvq_transport_config.max_window"),
            ("send_buffer", "hvq_transport_config.send_buffer"),
        ],
    },
    Mirror {
        block: "pub struct ChannelHint {",
        sources: CORE,
        members: &[
            ("local", "hvq_channel.local"),
            ("hints", "hvq_channel.hints"),
            ("congestion", "hvq_channel.congestion"),
            ("link", "- C programs have a local address for each link"),
        ],
    },
    Mirror {
        block: "settings! { EndpointConfig:",
        sources: CORE,
        members: &[
            ("id_length", "hvq_endpoint_options.id_length"),
            ("ids", "- for servers behind load balancers and with workers, which the C API has none of"),
            ("replay", "- for servers with workers, as above"),
            ("max_connections", "hvq_endpoint_options.max_connections"),
            ("max_handshaking", "hvq_endpoint_options.max_handshaking"),
            ("reset_key", "hvq_endpoint_options.reset_key"),
            ("token_key", "hvq_endpoint_options.token_key"),
            ("used_tokens", "- for servers with workers, as above"),
            ("epoch", "hvq_endpoint_options.epoch"),
            ("resets_per_second", "hvq_endpoint_options.resets_per_second"),
            ("negotiations_per_second", "hvq_endpoint_options.negotiations_per_second"),
            ("strays", "- for servers with workers, as above"),
            ("memory", "- for several endpoints of a process, as above"),
        ],
    },
    Mirror {
        block: "settings! { ServerConfig:",
        sources: CORE,
        members: &[
            ("tls", "- the rows of ServerTlsBuilder"),
            ("transport", "hvq_server_options.transport"),
            ("retry", "hvq_server_options.retry_from"),
            ("admission", "hvq_server_options.admission"),
        ],
    },
    Mirror {
        block: "settings! { ClientConfig:",
        sources: CORE,
        members: &[
            ("tls", "- the rows of ClientTlsBuilder"),
            ("transport", "hvq_client_options.transport"),
            ("token", "hvq_client_options.token"),
        ],
    },
    Mirror {
        block: "impl ClientTlsBuilder {",
        sources: CORE,
        members: &[
            ("alpn", "hvq_client_options.alpn"),
            ("verify", "hvq_client_options.ca_file"),
            ("verifier", "hvq_client_options.verify"),
            ("identity", "- for gateways that ask for certificates; programs bring an SSL_CTX that has one"),
            ("curves", "hvq_client_options.groups"),
            ("suites", "hvq_client_options.suites"),
            ("keylog", "hvq_client_options.keylog"),
            ("sessions", "hvq_client_options.sessions"),
            ("early_data", "hvq_client_options.early_data"),
            ("exportable", "- the C interface exports no keying material"),
            ("build", "hvq_client_config_new"),
        ],
    },
    Mirror {
        block: "impl ServerTlsBuilder {",
        sources: CORE,
        members: &[
            ("credential", "- for gateways of several names; programs bring an SSL_CTX that chooses by name"),
            ("alpn", "hvq_server_options.alpn"),
            ("ask_clients", "- for gateways; programs bring an SSL_CTX that asks"),
            ("suites", "hvq_server_options.suites"),
            ("keylog", "hvq_server_options.keylog"),
            ("early_data", "hvq_server_options.early_data"),
            ("tickets", "- one a connection; programs that want more bring an SSL_CTX that gives them"),
            ("ticket_keys", "- for servers that outlive a restart; programs bring an SSL_CTX with its keys"),
            ("early_data_context", "hvq_server_options.early_data_context"),
            ("exportable", "- the C interface exports no keying material"),
            ("build", "hvq_server_config_new"),
        ],
    },
    Mirror {
        block: "pub trait SessionStore: Send + Sync + fmt::Debug {",
        sources: CORE,
        members: &[("put", "hvq_session_store.put"), ("take", "hvq_session_store.take")],
    },
    Mirror {
        block: "pub struct Candidate {",
        sources: "../transport/core/src/endpoint",
        members: &[
            ("local", "hvq_candidate.route"),
            ("remote", "hvq_candidate.route"),
            ("address", "hvq_candidate.is_proven"),
            ("version", "hvq_candidate.version"),
            ("connections", "hvq_candidate.connections"),
            ("handshaking", "hvq_candidate.handshaking"),
            ("number", "- for decisions that come later; callbacks of C decide at once"),
            ("proposal", "hvq_candidate.proposal"),
        ],
    },
    Mirror {
        block: "pub enum Decision {",
        sources: CORE,
        members: &[
            ("Accept", "HVQ_ADMISSION_ACCEPT"),
            ("Retry", "HVQ_ADMISSION_RETRY"),
            ("Refuse", "HVQ_ADMISSION_REFUSE"),
            ("Ignore", "HVQ_ADMISSION_IGNORE"),
            ("Defer", "- for decisions that come later; callbacks of C decide at once"),
        ],
    },
    Mirror {
        block: "pub struct EndpointStats {",
        sources: CORE,
        members: &[
            ("dropped", "hvq_endpoint_list_dropped"),
            ("version_negotiations", "hvq_endpoint_statistics.version_negotiations"),
            ("retries", "hvq_endpoint_statistics.retries"),
            ("refusals", "hvq_endpoint_statistics.refusals"),
            ("stateless_resets", "hvq_endpoint_statistics.stateless_resets"),
            ("proven_addresses", "hvq_endpoint_statistics.proven_addresses"),
            (
                "slots",
                "- for the metrics of gateways: C sees the sum among the reasons of hvq_endpoint_list_dropped",
            ),
        ],
    },
    Mirror {
        block: "pub struct ConnectionStats {",
        sources: CORE,
        members: &[
            ("paths", "hvq_path_list"),
            ("frames", "hvq_connection_list_frames"),
            ("datagrams", "hvq_connection_info.datagrams_too_large"),
            ("dropped", "hvq_connection_info.packets_dropped"),
        ],
    },
    Mirror {
        block: "pub struct FrameCounter {",
        sources: CORE,
        members: &[
            ("path", "hvq_frame_counter.path"),
            ("kind", "hvq_frame_counter.kind"),
            ("sent", "hvq_frame_counter.sent"),
            ("sent_bytes", "hvq_frame_counter.sent_bytes"),
            ("received", "hvq_frame_counter.received"),
        ],
    },
    Mirror {
        block: "pub struct PathStats {",
        sources: CORE,
        members: &[
            ("id", "hvq_path_statistics.id"),
            ("tuple", "hvq_path_statistics.route"),
            ("state", "hvq_path_statistics.standing"),
            ("rtt", "hvq_path_statistics.rtt"),
            ("min_rtt", "hvq_path_statistics.min_rtt"),
            ("delay", "hvq_path_statistics.delay"),
            ("window", "hvq_path_statistics.window"),
            ("in_flight", "hvq_path_statistics.in_flight"),
            ("rate", "hvq_path_statistics.rate"),
            ("datagram_size", "hvq_path_statistics.datagram_size"),
            ("controller", "hvq_path_statistics.congestion"),
            ("counters", "- the rows of PathCounters"),
        ],
    },
    Mirror {
        block: "pub struct PathCounters {",
        sources: CORE,
        members: &[
            ("datagrams_sent", "hvq_path_statistics.datagrams_sent"),
            ("bytes_sent", "hvq_path_statistics.bytes_sent"),
            ("packets_received", "hvq_path_statistics.packets_received"),
            ("bytes_received", "hvq_path_statistics.bytes_received"),
            ("packets_lost", "hvq_path_statistics.packets_lost"),
            ("bytes_lost", "- the packets are counted there, and the structure keeps its layout"),
            ("packets_acknowledged", "hvq_path_statistics.packets_acknowledged"),
            ("spurious_losses", "hvq_path_statistics.spurious_losses"),
            ("marked", "hvq_path_statistics.packets_marked"),
            ("probe_timeouts", "hvq_path_statistics.probe_timeouts"),
        ],
    },
    Mirror {
        block: "pub enum Event {",
        sources: "../transport/core/src/connection",
        members: &[
            ("Connected", "HVQ_EVENT_CONNECTED"),
            ("EarlyData", "HVQ_EVENT_EARLY_DATA"),
            ("Confirmed", "HVQ_EVENT_CONFIRMED"),
            ("Stream", "- the rows of StreamEvent"),
            ("DatagramReceived", "HVQ_EVENT_DATAGRAM"),
            ("NewToken", "HVQ_EVENT_TOKEN"),
            ("Path", "- the rows of PathEvent"),
            ("Closed", "HVQ_EVENT_CLOSED"),
            ("Forgotten", "HVQ_EVENT_FORGOTTEN"),
        ],
    },
    Mirror {
        block: "pub enum StreamEvent {",
        sources: CORE,
        members: &[
            ("Opened", "HVQ_EVENT_STREAM_OPENED"),
            ("Readable", "HVQ_EVENT_STREAM_READABLE"),
            ("Writable", "HVQ_EVENT_STREAM_WRITABLE"),
            ("Finished", "HVQ_EVENT_STREAM_FINISHED"),
            ("Stopped", "HVQ_EVENT_STREAM_STOPPED"),
            ("Available", "HVQ_EVENT_STREAMS_AVAILABLE"),
        ],
    },
    Mirror {
        block: "pub enum PathEvent {",
        sources: CORE,
        members: &[
            ("Opened", "HVQ_EVENT_PATH_OPENED"),
            ("Validated", "HVQ_EVENT_PATH_VALIDATED"),
            ("ValidationFailed", "HVQ_EVENT_PATH_FAILED"),
            ("Migrated", "HVQ_EVENT_PATH_MIGRATED"),
            ("MigrationFailed", "HVQ_EVENT_PATH_MIGRATION_FAILED"),
            ("Silent", "HVQ_EVENT_PATH_SILENT"),
            ("Answering", "HVQ_EVENT_PATH_ANSWERING"),
            ("PeerStatus", "HVQ_EVENT_PATH_STATUS"),
            ("PeerHints", "HVQ_EVENT_PATH_HINTS"),
            ("Abandoned", "HVQ_EVENT_PATH_ABANDONED"),
            ("Available", "HVQ_EVENT_PATH_AVAILABLE"),
        ],
    },
    Mirror {
        block: "pub enum Moving {",
        sources: CORE,
        members: &[("Validated", "HVQ_MOVE_VALIDATED"), ("AtOnce", "HVQ_MOVE_AT_ONCE")],
    },
    Mirror {
        block: "pub struct Transmit {",
        sources: CORE,
        members: &[
            ("local", "hvq_transmit.route"),
            ("remote", "hvq_transmit.route"),
            ("ecn", "hvq_transmit.ecn"),
            ("dscp", "hvq_transmit.dscp"),
            ("bytes", "hvq_transmit.bytes"),
            ("segment", "hvq_transmit.segment"),
        ],
    },
    Mirror {
        block: "pub trait Scheduler: Send + fmt::Debug {",
        sources: SCHEDULER,
        members: &[
            ("name", "- schedulers of C are all named custom"),
            ("place", "hvq_scheduler.place"),
            ("first", "hvq_scheduler.first"),
            ("repeats", "hvq_scheduler.repeats"),
            ("copies", "- missing: schedulers of C copy nothing of paths that have collapsed"),
            ("observe", "hvq_scheduler.observe"),
            ("expected", "- only logs tell what built-in policies expected"),
        ],
    },
    Mirror {
        block: "pub enum Placement {",
        sources: SCHEDULER,
        members: &[
            ("On", "HVQ_PLACE_ON"),
            ("OnEach", "HVQ_PLACE_ON_EACH"),
            ("Wait", "HVQ_PLACE_WAIT"),
            ("WaitAtMost", "hvq_placement.wait"),
        ],
    },
    Mirror {
        block: "pub enum Observation {",
        sources: SCHEDULER,
        members: &[
            ("Placed", "HVQ_OBSERVED_PLACED"),
            ("Acknowledged", "HVQ_OBSERVED_ACKNOWLEDGED"),
            ("Lost", "HVQ_OBSERVED_LOST"),
            ("PathGone", "HVQ_OBSERVED_PATH_GONE"),
        ],
    },
    Mirror {
        block: "pub struct Item {",
        sources: SCHEDULER,
        members: &[
            ("content", "hvq_item.content"),
            ("bytes", "hvq_item.bytes"),
            ("header", "- at most 12 bytes beside hvq_item.bytes"),
            ("priority", "hvq_item.urgency"),
            ("message", "hvq_item.message_remaining"),
            ("pending", "hvq_item.pending"),
            ("credit", "hvq_item.credit"),
            ("role", "hvq_item.is_server"),
            ("head_of_line_delay", "hvq_item.waits_for"),
            ("history", "hvq_item.history"),
            ("now", "hvq_item.now"),
        ],
    },
    Mirror {
        block: "pub struct PathView {",
        sources: SCHEDULER,
        members: &[
            ("id", "hvq_path_view.id"),
            ("state", "hvq_path_view.standing"),
            ("send_allowance", "hvq_path_view.room"),
            ("next_send", "hvq_path_view.resumes"),
            ("window", "hvq_path_view.window"),
            ("in_flight", "hvq_path_view.in_flight"),
            ("delay", "hvq_path_view.delay"),
            ("rate", "hvq_path_view.rate"),
            ("backlog", "hvq_path_view.backlog"),
            ("others", "- hvq_path_view.backlog has them"),
            ("rtt", "hvq_path_view.rtt_smoothed"),
            ("loss", "hvq_path_view.loss"),
            ("datagram_size", "hvq_path_view.datagram_size"),
            ("overhead", "- hvq_path_view.datagram_size less this holds the frames"),
            (
                "lower_headers",
                "- a policy that counts them knows the version of IP from hvq_path_get_statistics",
            ),
            ("hints", "hvq_path_view.hints"),
        ],
    },
    Mirror {
        block: "pub struct Hints {",
        sources: SCHEDULER,
        members: &[
            ("rate", "hvq_hints.rate"),
            ("delay", "hvq_hints.delay"),
            ("loss", "hvq_hints.loss"),
            ("price_per_byte", "hvq_hints.price"),
            ("shared", "hvq_hints.sharing"),
            ("rate_back", "hvq_hints.rate_back"),
            ("metering", "hvq_hints.metering"),
        ],
    },
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("the folder can be read").path()) {
        match path.extension() {
            _ if path.is_dir() => sources(&path, into),
            Some(extension) if extension == "rs" => into.push(path),
            _ => {}
        }
    }
}

/// The member of a block that a line begins: a public field or function, a function of a trait, a
/// variant, a setting.
fn member<'a>(block: &str, line: &'a str) -> Option<&'a str> {
    let line = line.strip_prefix("    ")?;
    let rest = if block.starts_with("pub trait") {
        line.strip_prefix("fn ")?
    } else if block.starts_with("pub enum") {
        line
    } else if block.starts_with("settings!") {
        line.strip_prefix("set_")?
    } else {
        let public = line.strip_prefix("pub ")?;
        let public = public.strip_prefix("const ").unwrap_or(public);
        public.strip_prefix("fn ").unwrap_or(public)
    };
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let is_name =
        !name.is_empty() && (!block.starts_with("pub enum") || name.starts_with(char::is_uppercase));
    is_name.then_some(name)
}

/// The members of a block, wherever in the sources it is.
fn members(mirror: &Mirror) -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(mirror.sources), &mut files);
    let mut found = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("sources can be read");
        let mut is_inside = false;
        for line in text.lines() {
            match line {
                _ if line == mirror.block => is_inside = true,
                "}" => is_inside = false,
                _ if is_inside => found.extend(member(mirror.block, line).map(str::to_owned)),
                _ => {}
            }
        }
    }
    found
}

/// Returns true if C has a name: a function, a constant, or `struct.field`.
fn has(header: &str, name: &str) -> bool {
    let is_word = |text: &str, word: &str| {
        text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
    };
    let Some((structure, field)) = name.split_once('.') else { return is_word(header, name) };
    let start = [format!("typedef struct {structure} {{"), format!("\nstruct {structure} {{")];
    let body = start.iter().find_map(|start| header.split(start.as_str()).nth(1)?.split("\n}").next());
    let code = |body: &str| body.lines().filter(|line| !line.trim().starts_with("//")).collect::<String>();
    body.is_some_and(|body| is_word(&code(body), field))
}

#[test]
fn everything_of_the_core_has_a_name_in_c_or_a_reason_why_not() {
    let header = include_str!("../include/hvq.h");
    let mut findings = Vec::new();
    for mirror in MIRRORS {
        let found = members(mirror);
        let listed: BTreeSet<String> = mirror.members.iter().map(|(name, _)| (*name).to_owned()).collect();
        findings.extend(found.difference(&listed).map(|new| format!("{} {new}: no row", mirror.block)));
        findings
            .extend(listed.difference(&found).map(|old| format!("{} {old}: not in the core", mirror.block)));
        let missing = mirror.members.iter().filter(|(_, c)| !c.starts_with("- ") && !has(header, c));
        findings.extend(missing.map(|(name, c)| format!("{} {name}: C has no {c}", mirror.block)));
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
