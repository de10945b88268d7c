import { type FormEvent, useEffect, useState } from 'react'
import type { Settings, SettingsBody } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { ApiError, wordsFor } from '../api/request'
import { useNotices } from '../parts/notices'

/** Which model answers, and with whose key. A key goes in and never comes out. */
export function ModelForm() {
  const [settings, setSettings] = useState<Settings | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  useEffect(() => {
    agentApi.settings().then(setSettings, (error: unknown) => setProblem(wordsFor(error)))
  }, [])
  if (problem !== null) return <p className="field-problem">{problem}</p>
  if (settings === null) return <p className="muted is-late">Reading …</p>
  return <Fields key={JSON.stringify(settings)} settings={settings} onSaved={setSettings} />
}

interface FieldsProps {
  readonly settings: Settings
  readonly onSaved: (settings: Settings) => void
}

function Fields({ settings, onSaved }: FieldsProps) {
  const [draft, setDraft] = useState(settings)
  const [key, setKey] = useState('')
  const { isBusy, problems, save } = useSave(onSaved)
  const change = (part: Partial<Settings>) => setDraft({ ...draft, ...part })
  const isDemo = draft.provider === 'demo'

  function onSubmit(event: FormEvent) {
    event.preventDefault()
    const { provider, base_url, model, reasoning } = draft
    const api_key = key === '' ? {} : { api_key: key }
    void save({ provider, base_url: isDemo ? null : base_url, model, reasoning, ...api_key })
  }

  return (
    <form className="form" onSubmit={onSubmit}>
      <div className="field">
        <label htmlFor="provider">Provider</label>
        <select
          id="provider"
          value={draft.provider}
          onChange={({ target }) => change(preset(target.value === 'demo' ? 'demo' : 'openai-compatible', settings))}
        >
          <option value="demo">Demo model, without a key</option>
          <option value="openai-compatible">OpenAI, or anything compatible</option>
        </select>
      </div>
      {!isDemo && (
        <TextField
          id="base_url"
          label="Address"
          value={draft.base_url ?? ''}
          problem={problems['base_url']}
          onChange={(base_url) => change({ base_url })}
        />
      )}
      {!isDemo && (
        <>
          {' '}
          <TextField
            id="model"
            label="Model"
            value={draft.model}
            problem={problems['model']}
            onChange={(model) => change({ model })}
          />
          <div className="field">
            <label htmlFor="reasoning">Reasoning</label>
            <select
              id="reasoning"
              value={draft.reasoning}
              onChange={({ target }) => change({ reasoning: target.value as Settings['reasoning'] })}
            >
              <option value="none">none</option>
              <option value="low">low</option>
              <option value="medium">medium</option>
              <option value="high">high</option>
            </select>
          </div>
        </>
      )}{' '}
      {!isDemo && (
        <div className="field">
          <label htmlFor="api_key">API key</label>
          <input
            id="api_key"
            type="password"
            autoComplete="off"
            value={key}
            placeholder={settings.has_api_key ? 'One is stored. Write another one to replace it.' : 'None is stored'}
            aria-describedby="api_key_help"
            onChange={(event) => setKey(event.target.value)}
          />
          <p id="api_key_help" className="muted small">
            It is stored encrypted, and never shown again.
          </p>
        </div>
      )}
      <p className="field-problem" role="alert">
        {problems['']}
      </p>
      <div className="button-row">
        <button type="submit" className="primary" disabled={isBusy}>
          Save
        </button>
        {settings.has_api_key && (
          <button type="button" disabled={isBusy} onClick={() => void save({ ...bodyOf(settings), api_key: null })}>
            Remove the key
          </button>
        )}
      </div>
    </form>
  )
}

/** What the other provider begins with. */
function preset(provider: Settings['provider'], settings: Settings): Partial<Settings> {
  if (provider === settings.provider) return settings
  return provider === 'demo'
    ? { provider, base_url: null, model: 'demo' }
    : { provider, base_url: 'https://api.openai.com/v1', model: 'gpt-5-mini' }
}

function bodyOf({ provider, base_url, model, reasoning }: Settings): SettingsBody {
  return { provider, base_url, model, reasoning }
}

interface TextFieldProps {
  readonly id: string
  readonly label: string
  readonly value: string
  readonly problem: string | undefined
  readonly onChange: (text: string) => void
}

function TextField({ id, label, value, problem, onChange }: TextFieldProps) {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        value={value}
        required
        maxLength={500}
        spellCheck={false}
        autoCapitalize="none"
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}_problem`}
        onChange={(event) => onChange(event.target.value)}
      />
      <p id={`${id}_problem`} className="field-problem">
        {problem}
      </p>
    </div>
  )
}

function useSave(onSaved: (settings: Settings) => void) {
  const { tell } = useNotices()
  const [isBusy, setIsBusy] = useState(false)
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({})
  const save = async (body: SettingsBody) => {
    setIsBusy(true)
    setProblems({})
    try {
      onSaved(await agentApi.saveSettings(body))
      tell('Saved. It holds from the next answer on.')
    } catch (error) {
      const issues = error instanceof ApiError ? error.issues : []
      const ofFields = Object.fromEntries(issues.map(({ path, message }) => [path, message]))
      setProblems({ ...ofFields, '': wordsFor(error) })
    }
    setIsBusy(false)
  }
  return { isBusy, problems, save }
}
