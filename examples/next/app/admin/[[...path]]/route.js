import { dashboard } from '../../../lib/durably.js'

export const dynamic = 'force-dynamic'
export { dashboard as DELETE, dashboard as GET, dashboard as POST }
