import { PUBLIC_URL } from './deployment'
import {
  answerOfRefreshLost,
  keyChanged,
  refreshedByMany,
  removedMeanwhile,
  sealedForAnotherRow,
  signedOutMeanwhile,
} from './oauth-account-checks'
import { leadsNowhereElse, loopbackInProd, poisoned } from './oauth-address-checks'
import { both, failing, noVisit, type OAuthCase, ofAccounts, ofSettings } from './oauth-case'
import { changed } from './oauth-site'
import * as visits from './oauth-visit-checks'

/** What the plan of the tests demands of OAuth (T12), in its order. */
export const OAUTH_CASES: readonly OAuthCase[] = [
  both('a state that is used twice', visits.usedTwice),
  both('a state that is used 50 times at once, at two instances: one wins', visits.usedByMany),
  noVisit('a state in another browser', visits.withoutCookie),
  noVisit('a state in another browser, which is on a visit of its own', visits.withAnotherCookie),
  ofAccounts('a state in the browser of who signed in meanwhile, or has left', visits.ofSomebodyElseByNow),
  noVisit('a state that has been over for a second', visits.aSecondTooLate),
  both('a state that has a second left', visits.aSecondInTime),
  noVisit('no state', (_site, { back }) => changed(back, (each) => each.delete('state'))),
  noVisit('two states', (_site, { back }) => changed(back, (each) => each.append('state', 'other'))),
  noVisit('two codes', (_site, { back }) => changed(back, (each) => each.append('code', 'other'))),
  noVisit('two issuers', (_site, { back }) => changed(back, (each) => each.append('iss', 'http://evil.test'))),
  failing('a code of the other provider', visits.codeOfTheOtherProvider),
  noVisit('the callback of the other provider', visits.otherCallback),
  noVisit('a visit to a provider that is not the one of now', visits.otherProviderBefore),
  failing('a wrong issuer', (_site, { back }) => changed(back, (each) => each.set('iss', 'http://evil.test'))),
  failing('no issuer', (_site, { back }) => changed(back, (each) => each.delete('iss'))),
  failing('a wrong verifier', visits.wrongVerifier),
  both(
    'a challenge that is made plain on the way',
    visits.weakened((each) => each.set('code_challenge_method', 'plain')),
  ),
  both(
    'a challenge that is taken out on the way',
    visits.weakened((each) => {
      each.delete('code_challenge')
      each.delete('code_challenge_method')
    }),
  ),
  failing('a code that was used', visits.usedCode),
  failing('the code of somebody else', visits.codeOfSomebodyElse),
  both('a callback at the other instance', visits.atTheOtherInstance),
  both('a token endpoint that answers 500 after the state was used', visits.answering500),
  both('a token endpoint that does not answer in time after the state was used', visits.answeringTooLate),
  both('an address with two slashes', leadsNowhereElse({ given: '//evil.test' })),
  both('an address with a slash and a backslash', leadsNowhereElse({ given: '/\\evil.test' })),
  both('an address with two backslashes', leadsNowhereElse({ given: '\\\\evil.test' })),
  both('an address with an escaped tab', leadsNowhereElse({ given: '/%09/evil.test', to: '/%09/evil.test' })),
  both('an address with a tab', leadsNowhereElse({ given: '/\t/evil.test' })),
  both('an address with our host as its user', leadsNowhereElse({ given: 'http://agentic.test@evil.test/' })),
  both('an address with our host as its user, and no scheme', leadsNowhereElse({ given: '//agentic.test@evil.test/' })),
  both('an address with another port', leadsNowhereElse({ given: `${PUBLIC_URL}:8443/` })),
  both('an address in capital letters', leadsNowhereElse({ given: 'HTTP://EVIL.TEST/' })),
  both('an address with a dot after our host', leadsNowhereElse({ given: `${PUBLIC_URL}./` })),
  both('an address that is a script', leadsNowhereElse({ given: 'javascript:alert(1)' })),
  both('an address with ours as its fragment', leadsNowhereElse({ given: `//evil.test/#${PUBLIC_URL}/` })),
  both('an address of ours with another one as its fragment', leadsNowhereElse({ given: '/#//evil', to: '/#//evil' })),
  both('an address with letters that look like ours', leadsNowhereElse({ given: '//аgentic.test/' })),
  both('a Host that is not ours', poisoned({ host: 'evil.test' })),
  both(
    'an X-Forwarded-Host that is not ours',
    poisoned({
      ...{ 'x-forwarded-host': 'evil.test', 'x-forwarded-proto': 'https' },
      ...{ 'x-forwarded-port': '8443', forwarded: 'host=evil.test;proto=https' },
    }),
  ),
  ofSettings('a loopback address in prod', loopbackInProd),
  both('a script in error_description', visits.scriptInItsWords),
  ofAccounts('20 refreshes at each of two instances: one asks the provider', refreshedByMany),
  ofAccounts('a refresh whose answer is lost after the provider has rotated the token', answerOfRefreshLost),
  ofAccounts('a sign-out while a visit comes back', signedOutMeanwhile),
  ofAccounts('a connection that is removed while it is refreshed', removedMeanwhile),
  ofAccounts('a key that is changed while everything is used', keyChanged),
  both('a sealed value in the row of somebody else', sealedForAnotherRow),
]
