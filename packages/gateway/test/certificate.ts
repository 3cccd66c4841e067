import { generate } from "selfsigned";

/** A certificate and its private key, as PEM. */
export interface Certificate {
  readonly certificate: string;
  readonly key: string;
}

/** Makes a certificate for `localhost` and addresses. It signs itself, unless `ca` signs it. */
export async function makeCertificate(
  name = "localhost",
  addresses: readonly string[] = ["127.0.0.1"],
  ca?: Certificate,
): Promise<Certificate> {
  const { cert, private: key } = await generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    algorithm: "sha256",
    ...(ca && { ca: { cert: ca.certificate, key: ca.key } }),
    extensions: [
      { name: "basicConstraints", cA: true },
      {
        name: "subjectAltName",
        altNames: [{ type: 2, value: "localhost" }, ...addresses.map((ip) => ({ type: 7 as const, ip }))],
      },
    ],
  });
  return { certificate: cert, key };
}
