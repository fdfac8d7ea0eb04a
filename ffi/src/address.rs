//! Time, addresses and bytes.
//!
//! Times are nanoseconds since a moment of the caller's choice, the same for all calls on an endpoint; a monotonic clock
//! such as CLOCK_MONOTONIC serves well. The library reads no clock. Durations are nanoseconds too.

use crate::error::{Failure, HVQ_ERR_ARGUMENT, HVQ_ERR_TOO_SMALL, hvq_result};
use crate::guard::{self, entry};
use hvq_transport::connection::FourTuple;
use std::ffi::{c_char, c_void};
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// A moment that never comes: no deadline.
pub const HVQ_NEVER: u64 = u64::MAX;

/// An IP address and a port. Zeros are no address.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct hvq_address {
    /// 4 or 6; 0 for no address.
    pub family: u16,
    /// The port, in the byte order of the machine.
    pub port: u16,
    /// The scope of a link-local IPv6 address (the number of the interface), else 0.
    pub scope: u32,
    /// The address in network byte order; an IPv4 address has the first four bytes.
    pub ip: [u8; 16],
}

/// The route of datagrams: from a local address to a remote one.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct hvq_route {
    /// The address of a socket of the program. Both addresses of a route are of one family.
    pub local: hvq_address,
    /// The address of the peer.
    pub remote: hvq_address,
}

/// Bytes that belong to somebody else.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_bytes {
    /// The first byte; may be NULL if there are none.
    pub data: *const u8,
    /// The number of bytes.
    pub length: usize,
}

/// Room of the caller for bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_buffer {
    /// The first byte.
    pub data: *mut u8,
    /// The number of bytes that there is room for.
    pub capacity: usize,
    /// The number of bytes that were written, or would have been.
    pub length: usize,
}

impl hvq_buffer {
    /// Copies `bytes` to where `this` points to.
    ///
    /// # Safety
    ///
    /// `this` is NULL, or valid and points to as much room as it says.
    pub(crate) unsafe fn fill(this: *mut Self, bytes: &[u8]) -> Result<(), Failure> {
        guard::check(this)?;
        // SAFETY: the caller says so.
        let place = unsafe { &mut *this };
        place.length = bytes.len();
        if bytes.len() > place.capacity {
            return Err(HVQ_ERR_TOO_SMALL.into());
        }
        // SAFETY: as above.
        guard::copy_into(unsafe { guard::room(place.data, place.capacity) }?, bytes);
        Ok(())
    }
}

impl From<SocketAddr> for hvq_address {
    fn from(address: SocketAddr) -> Self {
        let mut ip = [0; 16];
        let (family, scope) = match address {
            SocketAddr::V4(v4) => {
                ip[..4].copy_from_slice(&v4.ip().octets());
                (4, 0)
            }
            SocketAddr::V6(v6) => {
                ip = v6.ip().octets();
                (6, v6.scope_id())
            }
        };
        Self { family, port: address.port(), scope, ip }
    }
}

impl hvq_address {
    /// The address for Rust.
    pub(crate) fn decode(&self) -> Result<SocketAddr, Failure> {
        match self.family {
            4 => {
                let [a, b, c, d, ..] = self.ip;
                Ok((Ipv4Addr::new(a, b, c, d), self.port).into())
            }
            6 => Ok(SocketAddrV6::new(Ipv6Addr::from(self.ip), self.port, 0, self.scope).into()),
            _ => Err(Failure::because(HVQ_ERR_ARGUMENT, "an address is neither IPv4 nor IPv6")),
        }
    }
}

impl hvq_route {
    /// The route for Rust.
    pub(crate) fn decode(&self) -> Result<FourTuple, Failure> {
        let (local, remote) = (self.local.decode()?, self.remote.decode()?);
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(Failure::because(
                HVQ_ERR_ARGUMENT,
                "the addresses of a route are of different families",
            ));
        }
        Ok(FourTuple { local, remote })
    }
}

impl From<FourTuple> for hvq_route {
    fn from(tuple: FourTuple) -> Self {
        Self { local: tuple.local.into(), remote: tuple.remote.into() }
    }
}

/// Reads an address from text such as `192.0.2.1:443` or `[2001:db8::1]:443`. Host names are not looked up.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT` if it is no address with a port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_address_parse(text: *const c_char, address: *mut hvq_address) -> hvq_result {
    entry(|| {
        guard::check(address)?;
        // SAFETY: the caller passes text that ends with a zero byte.
        let text = unsafe { guard::text(text) }?;
        let parsed: SocketAddr = text.parse().map_err(|error| Failure::because(HVQ_ERR_ARGUMENT, error))?;
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(address, parsed.into()) }
    })
}

/// Writes an address as text into `buffer`, with a zero byte at the end. 64 bytes are always enough.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT` if it is none, `HVQ_ERR_TOO_SMALL` if it does not fit; what fits was written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_address_format(
    address: *const hvq_address,
    buffer: *mut c_char,
    capacity: usize,
) -> hvq_result {
    entry(|| {
        // SAFETY: the caller passes a valid address.
        let text = unsafe { guard::reference(address) }?.decode()?.to_string();
        guard::check(buffer)?;
        // SAFETY: the caller gives that many bytes.
        let needed = unsafe { guard::put_text(&text, buffer, capacity) };
        if needed > capacity { Err(HVQ_ERR_TOO_SMALL.into()) } else { Ok(()) }
    })
}

/// Reads an address from a `struct sockaddr_in` or `struct sockaddr_in6` of `length` bytes.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT` if it is neither, or cut off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_address_from_sockaddr(
    sockaddr: *const c_void,
    length: usize,
    address: *mut hvq_address,
) -> hvq_result {
    entry(|| {
        guard::check(address)?;
        // SAFETY: the caller passes so many bytes.
        let bytes = unsafe { guard::elements(sockaddr.cast::<u8>(), length) }?;
        let read = decode_sockaddr(bytes)
            .ok_or_else(|| Failure::because(HVQ_ERR_ARGUMENT, "neither a sockaddr_in nor a sockaddr_in6"))?;
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(address, read.into()) }
    })
}

fn decode_sockaddr(bytes: &[u8]) -> Option<SocketAddr> {
    let family = libc::sa_family_t::from_ne_bytes(*bytes.first_chunk()?);
    match i32::from(family) {
        libc::AF_INET if bytes.len() >= mem::size_of::<libc::sockaddr_in>() => {
            // SAFETY: there are as many bytes as the struct has, and all bytes are a value of it.
            let v4 = unsafe { bytes.as_ptr().cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some((ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 if bytes.len() >= mem::size_of::<libc::sockaddr_in6>() => {
            // SAFETY: as above.
            let v6 = unsafe { bytes.as_ptr().cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Writes an address as a `struct sockaddr_in` or `struct sockaddr_in6` into `capacity` bytes at `sockaddr`, and the size
/// of that into `length`. A `struct sockaddr_storage` is always large enough.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_TOO_SMALL`, `HVQ_ERR_ARGUMENT` if the address is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_address_to_sockaddr(
    address: *const hvq_address,
    sockaddr: *mut c_void,
    capacity: usize,
    length: *mut usize,
) -> hvq_result {
    entry(|| {
        guard::check(length)?;
        // SAFETY: the caller passes a valid address.
        let socket = unsafe { guard::reference(address) }?.decode()?;
        // SAFETY: the caller gives that many bytes.
        let room = unsafe { guard::room(sockaddr.cast::<u8>(), capacity) }?;
        let written = match socket.ip() {
            IpAddr::V4(ip) => {
                // SAFETY: zeros are a value of the struct.
                let mut v4: libc::sockaddr_in = unsafe { mem::zeroed() };
                v4.sin_family = libc::AF_INET as libc::sa_family_t;
                v4.sin_port = socket.port().to_be();
                v4.sin_addr.s_addr = u32::from(ip).to_be();
                put_struct(room, &v4)
            }
            IpAddr::V6(ip) => {
                // SAFETY: as above.
                let mut v6: libc::sockaddr_in6 = unsafe { mem::zeroed() };
                v6.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                v6.sin6_port = socket.port().to_be();
                v6.sin6_addr.s6_addr = ip.octets();
                // SAFETY: the caller passed a valid address.
                v6.sin6_scope_id = unsafe { guard::reference(address) }?.scope;
                put_struct(room, &v6)
            }
        };
        let written = written.ok_or(HVQ_ERR_TOO_SMALL)?;
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(length, written) }
    })
}

fn put_struct<T>(room: &mut [mem::MaybeUninit<u8>], value: &T) -> Option<usize> {
    let size = mem::size_of::<T>();
    let place = room.get_mut(..size)?;
    // SAFETY: there is room for it, which needs no alignment.
    unsafe { place.as_mut_ptr().cast::<T>().write_unaligned(std::ptr::read(value)) };
    Some(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn addresses_survive_every_form() {
        for text in [c"192.0.2.1:443", c"[2001:db8::7]:65535", c"[fe80::1%9]:1"] {
            let (mut parsed, mut back) = (hvq_address::default(), hvq_address::default());
            let (mut storage, mut length) = ([0u8; 128], 0);
            let mut shown = [0 as c_char; 64];
            // SAFETY: all pointers are to places above.
            unsafe {
                assert_eq!(hvq_address_parse(text.as_ptr(), &mut parsed), 0);
                let place = storage.as_mut_ptr().cast();
                assert_eq!(hvq_address_to_sockaddr(&parsed, place, 128, &mut length), 0);
                assert_eq!(hvq_address_from_sockaddr(place, length, &mut back), 0);
                assert_eq!(hvq_address_format(&back, shown.as_mut_ptr(), 64), 0);
                assert_eq!(CStr::from_ptr(shown.as_ptr()), text);
            }
            assert_eq!(parsed, back);
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let mut address = hvq_address::default();
        let mut length = 0;
        // SAFETY: NULL, and places above.
        unsafe {
            assert_eq!(hvq_address_parse(c"localhost:1".as_ptr(), &mut address), -2);
            assert_eq!(hvq_address_parse(std::ptr::null(), &mut address), -1);
            assert_eq!(hvq_address_from_sockaddr([2u8, 0].as_ptr().cast(), 2, &mut address), -2);
            assert_eq!(hvq_address_from_sockaddr([2u8, 0].as_ptr().cast(), 1, &mut address), -2);
            assert_eq!(hvq_address_to_sockaddr(&address, std::ptr::null_mut(), 0, &mut length), -2);
        }
    }
}
