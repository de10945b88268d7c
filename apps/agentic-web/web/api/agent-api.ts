import type {
  Approval,
  Connection,
  Decision,
  Entrance,
  FileList,
  Me,
  RunView,
  Session,
  SessionDetail,
  SessionList,
  Settings,
  SettingsBody,
  ToolList,
} from '../../src/contract'
import { ask } from './request'

const at = (id: string) => encodeURIComponent(id)

/** The routes that this page asks, as `src/contract.ts` has them. Runs are followed by `run-source.ts`. */
export const agentApi = {
  entrance: () => ask<Entrance>('/api/entrance'),
  me: () => ask<Me>('/api/me'),
  signInAsDemo: (user_id: string) => ask<Me>('/api/auth/demo', { method: 'POST', body: { user_id } }),
  signOut: () => ask<null>('/api/auth/sign-out', { method: 'POST' }),

  async sessions(pages: number): Promise<{ readonly sessions: readonly Session[]; readonly hasMore: boolean }> {
    const sessions: Session[] = []
    let next: string | null = null
    for (let page = 0; page < pages; page++) {
      const cursor: string = next === null ? '' : `&cursor=${at(next)}`
      const list: SessionList = await ask<SessionList>(`/api/sessions?limit=50${cursor}`)
      sessions.push(...list.sessions)
      next = list.next
      if (next === null) break
    }
    return { sessions, hasMore: next !== null }
  },
  session: (id: string) => ask<SessionDetail>(`/api/sessions/${at(id)}`),
  newSession: () => ask<Session>('/api/sessions', { method: 'POST', body: {} }),
  renameSession: (id: string, title: string) =>
    ask<Session>(`/api/sessions/${at(id)}`, { method: 'PATCH', body: { title } }),
  deleteSession: (id: string) => ask<null>(`/api/sessions/${at(id)}`, { method: 'DELETE' }),
  files: async (id: string) => (await ask<FileList>(`/api/sessions/${at(id)}/files`)).files,
  fileAddress: (id: string, path: string) => `/api/sessions/${at(id)}/files/${path.split('/').map(at).join('/')}`,

  cancelRun: (id: string) => ask<RunView>(`/api/runs/${at(id)}/cancel`, { method: 'POST' }),
  retryRun: (id: string) => ask<RunView>(`/api/runs/${at(id)}/retry`, { method: 'POST' }),

  approvals: async () => (await ask<{ approvals: Approval[] }>('/api/approvals')).approvals,
  decide: (runId: string, name: string, decision: Decision) =>
    ask<{ ok: true }>(`/api/approvals/${at(runId)}/${at(name)}`, { method: 'POST', body: decision }),
  approvalLink: (runId: string, name: string) =>
    ask<{ approve_url: string; refuse_url: string }>(`/api/approvals/${at(runId)}/${at(name)}/link`, {
      method: 'POST',
    }),

  settings: () => ask<Settings>('/api/settings'),
  saveSettings: (body: SettingsBody) => ask<Settings>('/api/settings', { method: 'PUT', body }),
  tools: async () => (await ask<ToolList>('/api/tools')).tools,
  connection: () => ask<Connection>('/api/connection'),
  connect: (return_to: string) =>
    ask<{ url: string }>('/api/oauth/openai/start', { method: 'POST', body: { return_to } }),
  disconnect: () => ask<null>('/api/connection', { method: 'DELETE' }),
}

export type AgentApi = typeof agentApi
