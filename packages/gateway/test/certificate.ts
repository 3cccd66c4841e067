import { generate } from "selfsigned";

/** A certificate and its private key, as PEM. */
export interface Certificate {
  readonly certificate: string;
  readonly key: string;
}

/** Makes a certificate that signs itself, for `localhost` and 127.0.0.1. */
export async function makeCertificate(name = "localhost"): Promise<Certificate> {
  const { cert, private: key } = await generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    extensions: [
      { name: "basicConstraints", cA: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: "localhost" },
          { type: 7, ip: "127.0.0.1" },
        ],
      },
    ],
  });
  return { certificate: cert, key };
}
