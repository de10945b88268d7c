import { handler } from '../../../../lib/durably.js'

export const dynamic = 'force-dynamic'
export { handler as DELETE, handler as GET, handler as POST }
