/** A signature, and whether every engine must accept it. Keys, messages and signatures are hexadecimal. */
export interface SignatureVector {
  readonly name: string;
  readonly valid: boolean;
  readonly publicKey: string;
  readonly message: string;
  readonly signature: string;
}

/**
 * Signatures on which libraries disagree. Each hostile signature satisfies the verification equation, with or
 * without the cofactor. Only one check can refuse it: the check that the vector's name states.
 */
export const SIGNATURE_VECTORS: readonly SignatureVector[] = [
  {
    name: "honest",
    valid: true,
    publicKey: "b4bcca5668d46612b763e20cda9e145cda7b3c314800ed0b81a41c9a5c456fe2",
    message: "0000000000000000000000000000000000000000000000000000000000000001",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579b0ce2ba65bf8b490a7e4e884749b21bd20fd78fb0d92bfaa0bb43a77ea1c4120d",
  },
  {
    name: "S + L",
    valid: false,
    publicKey: "b4bcca5668d46612b763e20cda9e145cda7b3c314800ed0b81a41c9a5c456fe2",
    message: "0000000000000000000000000000000000000000000000000000000000000001",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579bf9b5b0c2d9ee5b6254eb7fea27acfae60fd78fb0d92bfaa0bb43a77ea1c4121d",
  },
  {
    name: "S + 8L",
    valid: false,
    publicKey: "b4bcca5668d46612b763e20cda9e145cda7b3c314800ed0b81a41c9a5c456fe2",
    message: "0000000000000000000000000000000000000000000000000000000000000001",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579b7481694d92a4dcca3035455f3e81137910d78fb0d92bfaa0bb43a77ea1c4128d",
  },
  {
    name: "key of small order: identity",
    valid: false,
    publicKey: "0100000000000000000000000000000000000000000000000000000000000000",
    message: "0000000000000000000000000000000000000000000000000000000000000002",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579b19437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: identity, sign bit set",
    valid: false,
    publicKey: "0100000000000000000000000000000000000000000000000000000000000080",
    message: "0000000000000000000000000000000000000000000000000000000000000002",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579b19437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: identity, y + p",
    valid: false,
    publicKey: "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    message: "0000000000000000000000000000000000000000000000000000000000000002",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579b19437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: identity, y + p, sign bit set",
    valid: false,
    publicKey: "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    message: "0000000000000000000000000000000000000000000000000000000000000002",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579b19437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: 1 T",
    valid: false,
    publicKey: "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    message: "0000000000000000000000000000000000000000000000000000000000000066",
    signature:
      "90ce4f18961e146b656223dad74f9278231fbbd63d6435e3cd246dc1af565be719437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: 2 T",
    valid: false,
    publicKey: "0000000000000000000000000000000000000000000000000000000000000000",
    message: "0000000000000000000000000000000000000000000000000000000000000064",
    signature:
      "bbd1279dc9668401e5dcfc912a7f092f16a60ff23f6ea4d55585849ba736a86419437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: 3 T",
    valid: false,
    publicKey: "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    message: "0000000000000000000000000000000000000000000000000000000000000064",
    signature:
      "715d94ec331c2c909d52f13ee79e22666548747d3444d072bda8f5811eac9e3a19437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: 4 T",
    valid: false,
    publicKey: "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    message: "0000000000000000000000000000000000000000000000000000000000000064",
    signature:
      "bbd1279dc9668401e5dcfc912a7f092f16a60ff23f6ea4d55585849ba736a86419437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: 5 T",
    valid: false,
    publicKey: "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    message: "0000000000000000000000000000000000000000000000000000000000000064",
    signature:
      "90ce4f18961e146b656223dad74f9278231fbbd63d6435e3cd246dc1af565be719437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: 6 T",
    valid: false,
    publicKey: "0000000000000000000000000000000000000000000000000000000000000080",
    message: "0000000000000000000000000000000000000000000000000000000000000065",
    signature:
      "bbd1279dc9668401e5dcfc912a7f092f16a60ff23f6ea4d55585849ba736a86419437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: 7 T",
    valid: false,
    publicKey: "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    message: "0000000000000000000000000000000000000000000000000000000000000064",
    signature:
      "f390645ffac2cd18d180f5c18fe8156cc0aa467a812a4b8d9748418936cbf09019437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: order 4, y = p",
    valid: false,
    publicKey: "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    message: "00000000000000000000000000000000000000000000000000000000000000c8",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579b19437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: order 4, y = p, sign bit set",
    valid: false,
    publicKey: "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    message: "00000000000000000000000000000000000000000000000000000000000000c9",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579b19437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key of small order: order 2, sign bit set",
    valid: false,
    publicKey: "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    message: "00000000000000000000000000000000000000000000000000000000000000c8",
    signature:
      "bbd1279dc9668401e5dcfc912a7f092f16a60ff23f6ea4d55585849ba736a86419437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "R of small order: identity",
    valid: false,
    publicKey: "b4bcca5668d46612b763e20cda9e145cda7b3c314800ed0b81a41c9a5c456fe2",
    message: "0000000000000000000000000000000000000000000000000000000000000003",
    signature:
      "01000000000000000000000000000000000000000000000000000000000000002893e9b7cc80717194cd0195f7b4c3e075ed48523274a5bedc73b6b13432ca06",
  },
  {
    name: "R of small order: identity, y + p",
    valid: false,
    publicKey: "b4bcca5668d46612b763e20cda9e145cda7b3c314800ed0b81a41c9a5c456fe2",
    message: "0000000000000000000000000000000000000000000000000000000000000003",
    signature:
      "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7fa0a38671b819f320115eda105b3fd5ca2f5053891465fa717f1aab34fc162a03",
  },
  {
    name: "R of small order: order 8",
    valid: false,
    publicKey: "b4bcca5668d46612b763e20cda9e145cda7b3c314800ed0b81a41c9a5c456fe2",
    message: "0000000000000000000000000000000000000000000000000000000000000003",
    signature:
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc057dad0f850ccdaf7d651799b8314f6507ea825594530b9bb2a5970a04ab1f5607",
  },
  {
    name: "R of small order: order 4",
    valid: false,
    publicKey: "b4bcca5668d46612b763e20cda9e145cda7b3c314800ed0b81a41c9a5c456fe2",
    message: "0000000000000000000000000000000000000000000000000000000000000003",
    signature:
      "00000000000000000000000000000000000000000000000000000000000000005bdc9a1cae4678935e0196eafcf966fb0e87abd52ac10882ecb13a01df6f2108",
  },
  {
    name: "R of small order: order 2",
    valid: false,
    publicKey: "b4bcca5668d46612b763e20cda9e145cda7b3c314800ed0b81a41c9a5c456fe2",
    message: "0000000000000000000000000000000000000000000000000000000000000003",
    signature:
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f726bb0a948d6cb789702514f8a93e7dfa5b3f6d97f0e5d99572dc33d59a1bc02",
  },
  {
    name: "R of mixed order: only the cofactored equation holds",
    valid: false,
    publicKey: "b4bcca5668d46612b763e20cda9e145cda7b3c314800ed0b81a41c9a5c456fe2",
    message: "0000000000000000000000000000000000000000000000000000000000000004",
    signature:
      "715d94ec331c2c909d52f13ee79e22666548747d3444d072bda8f5811eac9e3a7860971258563dc1bf76e97e8ea1374089cfe2a94b2c8cda965513a5311ad20c",
  },
  {
    name: "key of mixed order: only the cofactored equation holds",
    valid: false,
    publicKey: "46d41424931f25f4323c3f85f3572c8817115da4c792a4796d7ab884cb281a17",
    message: "000000000000000000000000000000000000000000000000000000000000012c",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579bc1b9891d977af130f0398bd6b9725da416eca67165edaa66484f236daaf6e80c",
  },
  {
    name: "key of mixed order: both equations hold",
    valid: true,
    publicKey: "46d41424931f25f4323c3f85f3572c8817115da4c792a4796d7ab884cb281a17",
    message: "000000000000000000000000000000000000000000000000000000000000012d",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579bfa395d75136d7383e53ede234cd9777e6acae8fa1bf3829455f28179d9d92b07",
  },
  {
    name: "key and R of mixed order: both equations hold",
    valid: true,
    publicKey: "46d41424931f25f4323c3f85f3572c8817115da4c792a4796d7ab884cb281a17",
    message: "0000000000000000000000000000000000000000000000000000000000000191",
    signature:
      "f390645ffac2cd18d180f5c18fe8156cc0aa467a812a4b8d9748418936cbf090f2bd952be79704bfd4efc67cb9993ab3a048d4cc2886aa8abb91c560d048df07",
  },
  {
    name: "key that is no point",
    valid: false,
    publicKey: "0200000000000000000000000000000000000000000000000000000000000000",
    message: "0000000000000000000000000000000000000000000000000000000000000005",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579b19437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
  {
    name: "key with y + p, no known secret",
    valid: false,
    publicKey: "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    message: "0000000000000000000000000000000000000000000000000000000000000006",
    signature:
      "322ed86236997bfe1a23036ed580f6d0e959f00dc0915b2aaa7a7b6458c9579b19437eb1e4174b7e080000000000000000000000000000000000000000000000",
  },
];

/** Test vectors for signatures, from RFC 8032 section 7.1. All values are hexadecimal. */
export const SIGNING_VECTORS: readonly {
  seed: string;
  publicKey: string;
  message: string;
  signature: string;
}[] = [
  {
    seed: "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    publicKey: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    message: "",
    signature:
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
  },
  {
    seed: "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    publicKey: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    message: "72",
    signature:
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
  },
];

/** Hashes of the ASCII text in `text`. */
export const HASH_VECTORS: readonly { text: string; blake2b256: string; sha256: string }[] = [
  {
    text: "",
    blake2b256: "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8",
    sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  },
  {
    text: "abc",
    blake2b256: "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319",
    sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  },
];

/** Authentication codes of an ASCII text under a key, computed by another implementation of BLAKE2b (RFC 7693). */
export const MAC_VECTORS: readonly { key: string; text: string; mac: string }[] = [
  {
    key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    text: "abc",
    mac: "d63a32d3e44738d7907f964316c241adaba0abfeabc32349677578a15a203f7f",
  },
  {
    key: "6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b",
    text: "",
    mac: "c7fad9dbdb92c87a932b219acd03953fccecf900f466e544b7671a268106fd72",
  },
];

/** The shared secret of SIGNING_VECTORS' two keypairs, computed by another implementation of X25519. */
export const AGREEMENT = "5166f24a6918368e2af831a4affadd97af0ac326bdf143596c045967cc00230e";
