//! Keys of certificates. BoringSSL makes them and signs with them: a second implementation of the curves would be 1 % of the program.

use boring::bn::BigNumContext;
use boring::ec::{EcGroup, EcKey, PointConversionForm};
use boring::error::ErrorStack;
use boring::hash::MessageDigest;
use boring::nid::Nid;
use boring::pkey::{PKey, Private};
use boring::sign::Signer;
use rcgen::{PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm, SigningKey};

/// A key for ECDSA over P-256 with SHA-256 (RFC 5480), with which rcgen signs certificates.
#[derive(Debug)]
pub struct CertificateKey {
    key: PKey<Private>,
    /// The public key as a point that is not compressed.
    point: Vec<u8>,
}

impl CertificateKey {
    /// A fresh key.
    pub fn generate() -> Self {
        Self::made().expect("BoringSSL makes keys as long as there is memory")
    }

    fn made() -> Result<Self, ErrorStack> {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
        let key = EcKey::generate(&group)?;
        let form = PointConversionForm::UNCOMPRESSED;
        let point = key.public_key().to_bytes(&group, form, &mut *BigNumContext::new()?)?;
        Ok(Self { key: PKey::from_ec_key(key)?, point })
    }

    /// The key in PEM (PKCS #8, RFC 5958).
    pub fn pem(&self) -> String {
        let pem = self.key.private_key_to_pem_pkcs8().expect("BoringSSL writes keys that it made");
        String::from_utf8(pem).expect("PEM is ASCII")
    }
}

impl PublicKeyData for CertificateKey {
    fn der_bytes(&self) -> &[u8] {
        &self.point
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl SigningKey for CertificateKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signed = Signer::new(MessageDigest::sha256(), &self.key)
            .and_then(|mut signer| signer.sign_oneshot_to_vec(message));
        signed.map_err(|_| rcgen::Error::RemoteKeyError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use boring::x509::X509;
    use rcgen::CertificateParams;

    #[test]
    fn a_certificate_bears_a_signature_of_its_key() {
        let key = CertificateKey::generate();
        let mut parameters = CertificateParams::new(["localhost".to_owned()]).unwrap();
        parameters.serial_number = Some(1_u64.into());
        let certificate = X509::from_pem(parameters.self_signed(&key).unwrap().pem().as_bytes()).unwrap();
        assert!(certificate.verify(&key.key).unwrap());
        assert!(!certificate.verify(&CertificateKey::generate().key).unwrap(), "another key");
        let read = PKey::private_key_from_pem(key.pem().as_bytes()).unwrap();
        assert!(read.public_eq(&key.key));
        assert_eq!(key.subject_public_key_info(), key.key.public_key_to_der().unwrap());
    }
}
