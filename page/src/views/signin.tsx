// Who may look, where there are keys or the gateway is no loopback address.
import { useState } from "preact/hooks";
import { loadSession, message, send, session } from "../api";
import { Problem, useTitle } from "../parts/small";

export function SignInForm() {
  const [secret, setSecret] = useState("");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  return (
    <form
      class="signin-form"
      onSubmit={async (event) => {
        event.preventDefault();
        setBusy(true);
        setProblem("");
        try {
          await send("POST", "/session", { secret });
          setSecret("");
          await loadSession();
        } catch (caught) {
          setProblem(message(caught));
        } finally {
          setBusy(false);
        }
      }}
    >
      <label>
        Secret or key
        <input type="password" name="secret" autocomplete="current-password" required value={secret} onInput={(event) => setSecret(event.currentTarget.value)} />
      </label>
      {problem ? <Problem>{problem}</Problem> : null}
      <button type="submit" class="main" disabled={busy || !secret}>
        {busy ? "Signing in …" : "Sign in"}
      </button>
      <p class="faint">It goes to this gateway only. The browser keeps a cookie that scripts cannot read.</p>
    </form>
  );
}

export function SignIn() {
  useTitle("Sign in");
  const who = session.value;
  return (
    <main class="alone">
      <div class="card signin">
        <img src="/inspector/assets/icon.svg" alt="" width="40" height="40" />
        <h1>Wireglot inspector</h1>
        <p>
          With the <strong>admin secret</strong> you see everything, with a <strong>client key</strong> the exchanges of that key.
        </p>
        {who?.why ? <p class="note">{who.why}</p> : null}
        {who?.provider ? <p><a class="button main" href="/login">Sign in with {who.provider}</a></p> : null}
        {who?.sign_in === false ? <p>There is nothing to sign in with: set <code>server.admin_secret</code>, or make a key with <code>wireglot keys</code>.</p> : <SignInForm />}
      </div>
    </main>
  );
}
