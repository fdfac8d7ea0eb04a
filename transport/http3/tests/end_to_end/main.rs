//! `h3` clients and servers over hvq, on loopback sockets.

#[cfg(test)]
mod bodies;
#[cfg(test)]
mod client;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod dynamic_tables;
#[cfg(test)]
mod extended_connect;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hostile_server;
#[cfg(test)]
mod origins;
mod priorities;
#[cfg(test)]
mod raw;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod verdict;
#[cfg(test)]
mod web_transport;
#[cfg(test)]
mod web_transport_aioquic;
#[cfg(test)]
mod web_transport_browser;
#[cfg(test)]
mod web_transport_flow;
#[cfg(test)]
mod web_transport_hostile;

#[cfg(test)]
#[path = "../../examples/web_transport_echo.rs"]
mod web_transport_echo;
