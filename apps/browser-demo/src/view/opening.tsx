/** Shown until the database is open. CSS adds the second line when that takes long. */
export function Opening() {
  return (
    <main className="full-page" aria-busy="true">
      <p className="opening">Opening the database …</p>
      <p className="opening-late">Still waiting. Another tab may be using the file.</p>
    </main>
  )
}
