/** Every skipped test that no written reason covers: one of its own, or in the quick lane one of its file. */
export function unexplainedSkips(tests, reasons, scale) {
  const hasReason = (key) => typeof reasons[key] === 'string' && reasons[key].trim() !== ''
  const isExplained = ({ name, file }) => hasReason(name) || (scale === 'quick' && hasReason(file))
  return tests.filter((test) => test.status === 'skipped' && !isExplained(test))
}

/** The tests of a vitest JSON report as one flat list; a file that did not load is one failed test. */
export function testsOf(report, root) {
  return report.testResults.flatMap((file) => {
    const path = file.name.startsWith(root) ? file.name.slice(root.length + 1) : file.name
    const tests = file.assertionResults.map((test) => ({
      file: path,
      name: test.fullName,
      status: ['passed', 'failed'].includes(test.status) ? test.status : 'skipped',
    }))
    const isBroken = file.status === 'failed' && !tests.some((test) => test.status === 'failed')
    return isBroken ? [...tests, { file: path, name: `${path} did not run`, status: 'failed' }] : tests
  })
}

/** The numbers that suites appended to the report file, one JSON object a line. */
export function suitesOf(lines) {
  return lines
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line))
}

/** Columns of equal width, the first row as the head. */
export function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)))
  const line = (row) => row.map((cell, column) => String(cell).padEnd(widths[column])).join('  ')
  return [line(rows[0]), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.slice(1).map(line)]
    .map((text) => text.trimEnd())
    .join('\n')
}

function countBy(tests, status) {
  return tests.filter((test) => test.status === status).length
}

/** One row for each folder that has tests: files, passed, failed, skipped. */
export function testTable(tests) {
  const folders = [...new Set(tests.map((test) => folderOf(test.file)))].sort()
  const rows = folders.map((folder) => {
    const own = tests.filter((test) => folderOf(test.file) === folder)
    const files = new Set(own.map((test) => test.file)).size
    return [folder, files, countBy(own, 'passed'), countBy(own, 'failed'), countBy(own, 'skipped')]
  })
  return table([['tests of', 'files', 'passed', 'failed', 'skipped'], ...rows])
}

function folderOf(path) {
  return path.startsWith('test/') ? 'test' : path.split('/').slice(0, 2).join('/')
}

/** One row for each suite that reported numbers (seeds, kills, runs, …). */
export function suiteTable(suites) {
  const numbers = ({ suite: _, ...rest }) => Object.entries(rest).map(([key, value]) => `${key}=${value}`)
  return table([['suite', 'numbers'], ...suites.map((suite) => [suite.suite, numbers(suite).join(' ')])])
}

/** The last line: tests and gates together. */
export function verdict(tests, gates) {
  const passed = countBy(tests, 'passed') + gates.filter((gate) => gate.code === 0).length
  const failed = countBy(tests, 'failed') + gates.filter((gate) => gate.code !== 0).length
  return { failed, line: `${passed} passed, ${failed} failed` }
}
