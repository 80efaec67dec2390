"""The pages of accounts, as plain HTML: signing in, invitations, and who may do what.

Every text given is escaped.
"""

from collections.abc import Sequence
from datetime import datetime
from html import escape

from annotation.account_domain import (
    INVITATION,
    LONGEST_NAME,
    SHORTEST_PASSWORD,
    Account,
    Invitation,
    Role,
)

STATIC = "/static/annotation"
_OTHER = {Role.ADMINISTRATOR: Role.RESEARCHER, Role.RESEARCHER: Role.ADMINISTRATOR}


def login_page(*, goes_to: str, name: str = "", problem: str = "") -> str:
    """The page to sign in on; `problem` is what was wrong with the last attempt."""
    form = (
        f'<input type="hidden" name="next" value="{escape(goes_to)}">'
        f"{_name(name, problem)}{_password('password', 'Password', 'current-password', problem)}"
        f"{_button('Sign in')}"
    )
    help_text = (
        '<p class="help after">No account, or the password forgotten? An administrator can give '
        "you a link. To label pictures you need none: open the link of your study.</p>"
    )
    body = f"<h1>Sign in</h1>{_problem(problem)}{_form('/login', form)}{help_text}"
    return _page("Sign in", body)


def invitation_page(
    invitation: Invitation, token: str, *, name: str = "", problem: str = ""
) -> str:
    """The page behind an invitation: a new account, or a new password for one there is."""
    account = invitation.account
    title = "Your account" if account is None else "A new password"
    told = f"{invitation.invited_by} has invited you as {_a(invitation.role)}."
    if account is not None:
        told = f"This gives the account {account.name} a new password and signs it out elsewhere."
    form = (
        (_name(name, problem) if account is None else _hidden_name(account.name))
        + _new_password(problem)
        + _button("Make the account" if account is None else "Keep the password")
    )
    action = f"/invite/{escape(token)}"
    return _page(
        title, f"<h1>{title}</h1><p>{escape(told)}</p>{_problem(problem)}{_form(action, form)}"
    )


def account_page(account: Account, *, problem: str = "", done: str = "") -> str:
    """One's own account: who one is, and a new password."""
    form = (
        _hidden_name(account.name)
        + _password("old", "Password until now", "current-password", problem)
        + _new_password(problem)
        + _button("Change the password")
    )
    out = f'<div class="after">{_form("/logout", _button("Sign out"))}</div>'
    body = (
        f"<h1>{escape(account.name)}</h1><p>You are {_a(account.role)}. A new password signs you "
        f"out everywhere else.</p>{_done(done)}{_problem(problem)}{_form('/account', form)}"
        f'<p class="after">{_links(account)}</p>{out}'
    )
    return _page("Your account", body)


def admin_page(
    me: Account, everybody: Sequence[Account], open_links: Sequence[Invitation], problem: str = ""
) -> str:
    """Everybody with an account, what can be done with each, and the links that still work."""
    rows = "".join(_account_row(me, one) for one in everybody)
    table = (
        '<div class="scroll" tabindex="0" role="region" aria-label="Accounts"><table>'
        "<thead><tr><th>Name</th><th>Role</th><th>Since</th><th>State</th><th>Change</th></tr>"
        f"</thead><tbody>{rows}</tbody></table></div>"
    )
    body = (
        f"<h1>Accounts</h1>{_problem(problem)}{table}{_invite()}{_open_links(open_links)}"
        f'<p class="after">{_links(me)}</p>'
    )
    return _page("Accounts", body, wide=True)


def link_page(link: str, told: str) -> str:
    """A link just made; it is shown this once."""
    body = (
        f"<h1>A link to hand on</h1><p>{escape(told)} It works once, for {INVITATION.days} days. "
        "Send it to that person only; it is not shown again.</p>"
        '<label for="link">Link</label>'
        f'<input id="link" value="{escape(link)}" readonly autofocus>'
        '<p><a class="button" href="/admin">Back to the accounts</a></p>'
    )
    return _page("A link to hand on", body)


def bar(account: Account) -> str:
    """A line for the foot of the researchers' pages: who is signed in, and the way out."""
    return (
        '<nav class="account-bar" aria-label="Your account">'
        f"<span>Signed in as {escape(account.name)}</span>{_links(account, studio=False)}"
        '<form method="post" action="/logout"><button>Sign out</button></form></nav>'
    )


def _links(account: Account, *, studio: bool = True) -> str:
    links = ['<a href="/studio/">Studio</a>'] if studio else []
    links += ['<a href="/admin">Accounts</a>'] if account.role is Role.ADMINISTRATOR else []
    return " ".join([*links, '<a href="/account">Your account</a>'])


def _account_row(me: Account, one: Account) -> str:
    state = "active" if one.disabled is None else f"disabled since {_day(one.disabled)}"
    you = " (you)" if one.id == me.id else ""
    return (
        f"<tr><th scope=row>{escape(one.name)}{you}</th><td>{one.role}</td>"
        f'<td>{_day(one.created)}</td><td>{state}</td><td class="changes">{_changes(one)}</td></tr>'
    )


def _changes(one: Account) -> str:
    if one.disabled is not None:
        return _change(one, "enable", "Enable")
    return "".join(
        (
            _change(one, _OTHER[one.role].value, f"Make {_OTHER[one.role]}"),
            _change(one, "reset", "New password link"),
            _change(one, "disable", "Disable"),
        )
    )


def _change(one: Account, what: str, text: str) -> str:
    name = escape(f"{text}: {one.name}")
    return _form(
        f"/admin/{what}/{escape(one.id)}", f'<button aria-label="{name}">{escape(text)}</button>'
    )


def _invite() -> str:
    options = "".join(f'<option value="{role}">{role}</option>' for role in reversed(Role))
    form = (
        '<label for="role">Role</label>'
        f'<select id="role" name="role">{options}</select>{_button("Make a link")}'
    )
    return f'<h2>Invite somebody</h2><div class="invite">{_form("/admin/invite", form)}</div>'


def _open_links(invitations: Sequence[Invitation]) -> str:
    if not invitations:
        return ""
    rows = "".join(f"<li>{_open_link(one)}</li>" for one in invitations)
    return f'<h2>Links not used yet</h2><ul class="links">{rows}</ul>'


def _open_link(one: Invitation) -> str:
    what = f"for {_a(one.role)}"
    if one.account is not None:
        what = f"for a new password of {one.account.name}"
    told = f"{what}, by {one.invited_by}, until {_day(one.expires)}"
    button = f'<button aria-label="{escape(f"Withdraw the link {told}")}">Withdraw</button>'
    return f"<span>{escape(told)}</span>{_form(f'/admin/withdraw/{escape(one.id)}', button)}"


def _a(role: Role) -> str:
    return "an administrator" if role is Role.ADMINISTRATOR else "a researcher"


def _day(time: datetime) -> str:
    return f"{time:%Y-%m-%d}"


def _form(action: str, inside: str) -> str:
    return f'<form method="post" action="{action}">{inside}</form>'


def _button(text: str) -> str:
    return f'<button type="submit">{escape(text)}</button>'


def _name(name: str, problem: str) -> str:
    return (
        f'<label for="name">Name</label><input id="name" name="name" value="{escape(name)}"'
        f' autocomplete="username" maxlength="{LONGEST_NAME}" required autofocus{_wrong(problem)}>'
    )


def _hidden_name(name: str) -> str:
    # So that password managers know whose password it is.
    return f'<input type="hidden" name="username" autocomplete="username" value="{escape(name)}">'


def _new_password(problem: str) -> str:
    field = _password("password", "New password", "new-password", problem, SHORTEST_PASSWORD)
    return (
        f'{field}<p class="help" id="password-help">At least {SHORTEST_PASSWORD} characters; four '
        "words are good.</p>"
    )


def _password(name: str, label: str, fill: str, problem: str, least: int = 1) -> str:
    return (
        f'<label for="{name}">{label}</label><input id="{name}" name="{name}" type="password"'
        f' autocomplete="{fill}" minlength="{least}" required{_wrong(problem)}>'
    )


def _wrong(problem: str) -> str:
    return ' aria-invalid="true" aria-describedby="problem"' if problem else ""


def _problem(text: str) -> str:
    return f'<p class="problem" id="problem" role="alert">{escape(text)}</p>' if text else ""


def _done(text: str) -> str:
    return f'<p class="done" role="status">{escape(text)}</p>' if text else ""


def _page(title: str, body: str, *, wide: bool = False) -> str:
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · SemSim Studio</title>"
        f'<link rel="icon" href="{STATIC}/icon.svg">'
        f'<link rel="stylesheet" href="{STATIC}/signin.css">'
        f'<link rel="stylesheet" href="{STATIC}/accounts.css">'
    )
    kind = "accounts wide" if wide else "accounts"
    main = f'<main class="{kind}"><p class="product">SemSim Studio</p>{body}</main>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{main}</body></html>'
