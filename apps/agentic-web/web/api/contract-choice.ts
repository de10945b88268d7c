/**
 * How a message is sent: as a run that is followed (`runs`), or as one request whose answer is the stream (`chat`), which
 * is the contract from before there were runs. `?contract=chat` in the address chooses, and stays chosen in this browser.
 */
export type ContractChoice = 'runs' | 'chat'

const KEY = 'contract'

export function contractChoice(): ContractChoice {
  const named = new URLSearchParams(location.search).get(KEY)
  if (named === 'runs' || named === 'chat') chooseContract(named)
  return read() === 'chat' ? 'chat' : 'runs'
}

export function chooseContract(choice: ContractChoice): void {
  try {
    localStorage.setItem(KEY, choice)
  } catch {
    // A browser that keeps nothing: this page goes on as it is.
  }
}

function read(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}
