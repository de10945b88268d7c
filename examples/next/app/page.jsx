import { Question } from './question.jsx'

export default function Page() {
  return (
    <main>
      <h1>durably in Next</h1>
      <Question />
      <p>
        <a href="/admin">The dashboard</a>
      </p>
    </main>
  )
}
