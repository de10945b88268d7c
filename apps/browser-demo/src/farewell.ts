/** With these a page is told that it goes. */
const FAREWELLS = ['beforeunload', 'visibilitychange', 'pagehide', 'freeze', 'unload'] as const

let isKilled = false

/** Lets `killPage()` keep them from everybody who listens from now on. */
export function guardFarewells(): void {
  for (const type of FAREWELLS) {
    addEventListener(type, (event) => isKilled && event.stopImmediatePropagation(), true)
  }
}

/** Ends the page as a crash would: nothing in it gets to clean up. */
export function killPage(): void {
  isKilled = true
  location.reload()
}
