import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { ServerCredentials } from "@grpc/grpc-js";
import type { Settings } from "../config/settings.js";
import { usable } from "../service/secrets.js";

/**
 * TLS if the settings name a certificate, and certificates of clients if they name who signs those.
 * @throws FloodgateError if a file cannot be read, or is no certificate or key.
 */
export function credentialsOf({ rlsCertFile, rlsKeyFile, rlsClientCaFile }: Settings): ServerCredentials {
  if (rlsCertFile === undefined || rlsKeyFile === undefined) return ServerCredentials.createInsecure();
  const cert = read("rlsCertFile", rlsCertFile);
  const key = read("rlsKeyFile", rlsKeyFile);
  const ca = rlsClientCaFile === undefined ? null : read("rlsClientCaFile", rlsClientCaFile);
  usable("rlsCertFile", rlsCertFile, () => new X509Certificate(cert));
  usable("rlsKeyFile", rlsKeyFile, () => createSecureContext({ cert, key }));
  if (ca !== null) usable("rlsClientCaFile", rlsClientCaFile as string, () => new X509Certificate(ca));
  return ServerCredentials.createSsl(ca, [{ cert_chain: cert, private_key: key }], ca !== null);
}

function read(setting: keyof Settings, path: string): Buffer {
  return usable(setting, path, () => readFileSync(path));
}
