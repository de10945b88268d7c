/** @type {import('next').NextConfig} */
const config = {
  // It has a part in native code.
  serverExternalPackages: ['@libsql/client'],
}

export default config
