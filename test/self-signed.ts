import { generateKeyPairSync, sign } from 'node:crypto'

/** A key, and a certificate that nobody but its owner has signed. */
export function selfSigned(name: string): { readonly key: string; readonly cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(der(0x06, Buffer.from('2a8648ce3d040302', 'hex')))
  const commonName = sequence(der(0x06, Buffer.from('550403', 'hex')), der(0x0c, Buffer.from(name)))
  const owner = sequence(der(0x31, commonName))
  const validity = sequence(...['200101000000Z', '491231000000Z'].map((time) => der(0x17, Buffer.from(time))))
  const serial = integer(1)
  const content = sequence(
    ...[der(0xa0, integer(2)), serial, ecdsaWithSha256, owner, validity, owner],
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const signature = der(0x03, Buffer.concat([Buffer.of(0), sign('sha256', content, privateKey)]))
  const body = sequence(content, ecdsaWithSha256, signature).toString('base64')
  const lines = body.match(/.{1,64}/g) ?? []
  return {
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
  }
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts))
}

function integer(value: number): Buffer {
  return der(0x02, Buffer.of(value))
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.of(tag, ...size), content])
}
