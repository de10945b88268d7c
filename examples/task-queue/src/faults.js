import { atSpeed } from './speed.js'

/**
 * How a mail server behaves when it is told who shall get a mail: it accepts that, refuses with an SMTP code, drops the
 * connection, or does not answer.
 *
 * @typedef {'accept' | 'drop' | 'silence' | { readonly code: number, readonly text: string }} Answer
 */

const GREYLISTED_MS = atSpeed(1500)

/** What the server answers to each address: it remembers which ones it has seen. */
export class Faults {
  /** @type {Map<string, number>} */
  #firstTries = new Map()
  #isRepaired = false

  /** From now on only addresses that do not exist are refused. */
  repair() {
    this.#isRepaired = true
  }

  /**
   * @param {string} address
   * @returns {Answer}
   */
  answerTo(address) {
    const [name, domain] = address.split('@')
    if (name === 'nobody') return { code: 550, text: '5.1.1 No such user here' }
    if (this.#isRepaired) return 'accept'
    switch (domain) {
      case 'greylisted.example':
        return this.#greylist(address)
      case 'flaky.example':
        return this.#isFirstTry(address) ? 'drop' : 'accept'
      case 'broken.example':
        return 'drop'
      case 'silent.example':
        return 'silence'
      default:
        return 'accept'
    }
  }

  /**
   * Who sends spam does not come back.
   *
   * @param {string} address
   * @returns {Answer}
   */
  #greylist(address) {
    this.#isFirstTry(address)
    const left = (this.#firstTries.get(address) ?? 0) + GREYLISTED_MS - Date.now()
    const seconds = Math.ceil(left / 100) / 10
    return left <= 0 ? 'accept' : { code: 451, text: `4.7.1 Greylisted, retry in ${seconds} s` }
  }

  /** @param {string} address */
  #isFirstTry(address) {
    if (this.#firstTries.has(address)) return false
    this.#firstTries.set(address, Date.now())
    return true
  }
}
