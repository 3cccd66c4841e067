/** The CRC16 (XMODEM) of each byte. */
const crcs = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x8000 && 0x1021);
  return crc;
});

/** The Cluster slot of a key: that of the text in its first braces, if they hold any. */
export function slotOf(key: string): number {
  let crc = 0;
  const [, text = key] = /^[^{]*\{([^}]+)\}/.exec(key) ?? [];
  for (const byte of Buffer.from(text)) crc = ((crc << 8) ^ (crcs[((crc >> 8) ^ byte) & 255] as number)) & 0xffff;
  return crc % 16_384;
}
