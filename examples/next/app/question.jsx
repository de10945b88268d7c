'use client'

import { DurablyProvider, useRun } from '@coji/durably-react'
import { createDurablyClient } from '@coji/durably-server/client'
import { useState } from 'react'

const durably = createDurablyClient({ url: '/api/durably' })

export function Question() {
  const [id, setId] = useState(null)
  const ask = async () => setId((await durably.trigger('ask', { question: 'Tea?' })).id)
  return (
    <DurablyProvider durably={durably}>
      <button type="button" onClick={ask}>
        Ask
      </button>
      {id !== null && <Answer id={id} />}
    </DurablyProvider>
  )
}

function Answer({ id }) {
  const { run } = useRun(id)
  if (run === null) return <p>…</p>
  if (run.status === 'completed') return <p>{run.output}</p>
  return (
    <p>
      Tea?{' '}
      <button type="button" onClick={() => durably.signal(id, 'answer', 'Yes, please.')}>
        Yes, please.
      </button>
    </p>
  )
}
