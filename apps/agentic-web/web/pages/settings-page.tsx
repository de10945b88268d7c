import { type ReactNode, useEffect, useState } from 'react'
import type { ToolList } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { chooseContract, type ContractChoice, contractChoice } from '../api/contract-choice'
import { wordsFor } from '../api/request'
import { useTitle } from '../parts/use-title'
import { PageHead } from '../shell/page-head'
import { ConnectionCard } from './connection-card'
import { ModelForm } from './model-form'

export function SettingsPage() {
  useTitle('Settings')
  return (
    <>
      <PageHead title="Settings" />
      <div className="transcript">
        <div className="page">
          <Card title="Model">
            <ModelForm />
          </Card>
          <ConnectionCard />
          <Card title="Tools">
            <Tools />
          </Card>
          <Card title="This page">
            <ContractForm />
          </Card>
        </div>
      </div>
    </>
  )
}

export function Card({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className="card" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  )
}

function Tools() {
  const [tools, setTools] = useState<ToolList['tools'] | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  useEffect(() => {
    agentApi.tools().then(setTools, (error: unknown) => setProblem(wordsFor(error)))
  }, [])
  if (problem !== null) return <p className="field-problem">{problem}</p>
  if (tools === null) return <p className="muted is-late">Reading …</p>
  if (tools.length === 0) return <p className="muted">No worker is running at present, so there are none.</p>
  return (
    <ul className="tools">
      {tools.map(({ name, description, needsApproval }) => (
        <li key={name}>
          <code>{name}</code>
          {needsApproval && <span className="badge">asks you first</span>}
          <p className="muted small">{description}</p>
        </li>
      ))}
    </ul>
  )
}

function ContractForm() {
  const [choice, setChoice] = useState<ContractChoice>(contractChoice)
  return (
    <div className="field">
      <label htmlFor="contract">How messages are sent</label>
      <select
        id="contract"
        value={choice}
        onChange={({ target }) => {
          const chosen = target.value === 'chat' ? 'chat' : 'runs'
          chooseContract(chosen)
          setChoice(chosen)
        }}
      >
        <option value="runs">As a run that is followed (POST /api/runs)</option>
        <option value="chat">As one request that streams (POST /api/chat/…)</option>
      </select>
      <p className="muted small">The second is the older contract. Both give the same conversation.</p>
    </div>
  )
}
