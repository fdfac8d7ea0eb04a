use super::*;
use crate::PathId;
use crate::crypto::vectors::hex;
use crate::error::Dropped;
use crate::wire::header::{HeaderLayout, LongHeader, LongKind, patch_length};
use bytes::BytesMut;

fn client_destination() -> ConnectionId {
    ConnectionId::new(&hex("8394c8f03e515708")).unwrap()
}

/// The CRYPTO frame with the ClientHello of RFC 9001 §A.2.
fn client_hello() -> Vec<u8> {
    hex("060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868
         04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578
         616d706c652e636f6dff01000100000a00080006001d00170018001000070005
         04616c706e000500050100000000003300260024001d00209370b2c9caa47fba
         baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400
         0d0010000e0403050306030203080408050806002d00020101001c0002400100
         3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000
         75300901100f088394c8f03e51570806048000ffff")
}

/// The client's first packet of 1200 bytes as it is before it is sealed: number 2, the ClientHello and PADDING.
fn first_packet(version: Version) -> (Vec<u8>, HeaderLayout) {
    let (kind, destination) = (LongKind::Initial, client_destination());
    let header = LongHeader { kind, version, destination, source: ConnectionId::EMPTY, token: &[] };
    let mut packet = Vec::new();
    let layout = header.put(&mut packet, 2, 4);
    packet.extend_from_slice(&client_hello());
    packet.resize(1200 - 16, 0);
    patch_length(&mut packet, &layout, 0, 16);
    (packet, layout)
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-5.2
//= type=test
//# The HKDF-Expand-Label function defined in TLS 1.3 MUST be used for Initial packets even where the TLS
//# versions offered do not include TLS 1.3.
#[test]
fn the_secrets_are_those_of_the_rfc() {
    // RFC 9001 §A.1.
    let (client, server) = initial_secrets(Version::V1, &client_destination());
    assert_eq!(client.to_vec(), hex("c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea"));
    assert_eq!(server.to_vec(), hex("3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b"));
    // RFC 9369 §A.1.
    let (client, server) = initial_secrets(Version::V2, &client_destination());
    assert_eq!(client.to_vec(), hex("14ec9d6eb9fd7af83bf5a668bc17a7e283766aade7ecd0891f70f9ff7f4bf47b"));
    assert_eq!(server.to_vec(), hex("0263db1782731bf4588e7e4d93b7463907cb8cd8200b5da55a8bd488eafc37c1"));
}

#[test]
fn the_first_packet_of_a_client_of_version_2_is_that_of_the_rfc() {
    // RFC 9369 §A.2.
    let (mut packet, layout) = first_packet(Version::V2);
    assert_eq!(packet[..22], hex("d36b3343cf088394c8f03e5157080000449e00000002"));
    let (seal, _) = initial_keys(Version::V2, &client_destination(), Role::Client);
    seal.seal(&mut packet, 0, &layout, PathId::ZERO, 2);
    assert_eq!(packet[..32], hex("d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485"));
    assert_eq!(packet[1184..], hex("a18b2faa745b6fe189cf772a9f84cbfc"));
}

#[test]
fn the_first_packet_of_a_server_of_version_2_is_that_of_the_rfc() {
    // RFC 9369 §A.3.
    let sealed = hex("dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698
         baeea26b91eb761d9b89237bbf87263017915358230035f7fd3945d88965cf17
         f9af6e16886c61bfc703106fbaf3cb4cfa52382dd16a393e42757507698075b2
         c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca8
         4bed8521e2e140");
    let (_, open) = initial_keys(Version::V2, &client_destination(), Role::Client);
    let mut packet = BytesMut::from(sealed.as_slice());
    let header = open.unprotect(&mut packet, 18).unwrap();
    assert_eq!((header.first, header.truncated, header.number_length), (0xd1, 1, 2));
    let payload = open.open(packet, 20, PathId::ZERO, 1).unwrap();
    assert_eq!(payload[..12], hex("02000000000600405a020000"));
    // The keys of version 1 do not open it.
    let (_, open) = initial_keys(Version::V1, &client_destination(), Role::Client);
    let mut packet = BytesMut::from(sealed.as_slice());
    let header = open.unprotect(&mut packet, 18).unwrap();
    assert!(open.open(packet, 18 + header.number_length, PathId::ZERO, header.truncated.into()).is_err());
}

#[test]
fn the_first_packet_of_a_client_is_that_of_the_rfc() {
    // RFC 9001 §A.2. The tag covers every byte, so that the beginning and the end stand for the whole.
    let (mut packet, layout) = first_packet(Version::V1);
    assert_eq!(packet[..22], hex("c300000001088394c8f03e5157080000449e00000002"));

    let (seal, _) = initial_keys(Version::V1, &client_destination(), Role::Client);
    seal.seal(&mut packet, 0, &layout, PathId::ZERO, 2);
    assert_eq!(packet.len(), 1200);
    assert_eq!(packet[..32], hex("c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11"));
    assert_eq!(packet[1184..], hex("e221af44860018ab0856972e194cd934"));

    let (_, open) = initial_keys(Version::V1, &client_destination(), Role::Server);
    let mut packet = BytesMut::from(packet.as_slice());
    let header = open.unprotect(&mut packet, 18).unwrap();
    assert_eq!((header.first, header.truncated, header.number_length), (0xc3, 2, 4));
    let payload = open.open(packet, 22, PathId::ZERO, 2).unwrap();
    assert_eq!(payload[..245], client_hello());
    assert!(payload[245..].iter().all(|byte| *byte == 0));
}

#[test]
fn the_first_packet_of_a_server_is_that_of_the_rfc() {
    // RFC 9001 §A.3.
    let mut packet = hex("c1000000010008f067a5502a4262b50040750001
         02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739
         88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94
         0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00
         020304");
    let layout = HeaderLayout { length_offset: Some(16), number_offset: 18, number_length: 2 };
    let (seal, _) = initial_keys(Version::V1, &client_destination(), Role::Server);
    seal.seal(&mut packet, 0, &layout, PathId::ZERO, 1);
    let expected = hex("cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a
         5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3
         dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84
         022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4
         2158407dd074ee");
    assert_eq!(packet, expected);
}

#[test]
fn packets_for_another_connection_do_not_open() {
    let mut packet = vec![0xc0; 30];
    let layout = HeaderLayout { length_offset: None, number_offset: 10, number_length: 1 };
    let (seal, own) = initial_keys(Version::V1, &client_destination(), Role::Client);
    seal.seal(&mut packet, 0, &layout, PathId::ZERO, 0);
    let (_, other) = initial_keys(Version::V1, &ConnectionId::EMPTY, Role::Server);
    for open in [own, other] {
        let mut packet = BytesMut::from(packet.as_slice());
        open.unprotect(&mut packet, 10).unwrap();
        assert_eq!(open.open(packet, 11, PathId::ZERO, 0), Err(Dropped::Undecryptable));
    }
}
