import { generate } from "selfsigned";

/** A certificate and its private key, as PEM. */
export interface Certificate {
  readonly certificate: string;
  readonly key: string;
}

/** Makes a certificate that signs itself, for `localhost` and addresses. */
export async function makeCertificate(name = "localhost", addresses: readonly string[] = ["127.0.0.1"]): Promise<Certificate> {
  const { cert, private: key } = await generate([{ name: "commonName", value: name }], {
    keyType: "ec",
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
