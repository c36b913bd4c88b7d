//! Acting as a ServiceAccount: the headers of one request, made where the request is.
//!
//! An API server takes an empty user or group for none at all and answers with the rights of
//! whoever sent the request, which is the host. So an empty claim is no request here. The groups
//! are sent too: a server refuses groups without a user, should the user get lost on the way.

use http::header::{HeaderName, HeaderValue};
use trimtab_core::terms::Account;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// The headers; `taken` says that the connection's own credentials impersonate somebody, whose
/// headers would take the place of these.
///
/// # Errors
/// Why the request must not be sent.
pub(crate) fn headers(
    account: &Account,
    taken: bool,
) -> Result<[(HeaderName, HeaderValue); 4], String> {
    if taken {
        return Err(format!(
            "it is to be made as {account}, and the host's own credentials impersonate somebody already: use credentials without `as`"
        ));
    }
    let (namespace, name) = (account.namespace(), account.name());
    if namespace.is_empty() || name.is_empty() {
        return Err(format!("empty_identity: {account} names no ServiceAccount"));
    }
    let [all, of_namespace, authenticated] = account.groups();
    let header = |name: HeaderName, text: String| {
        let claim = HeaderValue::from_str(&text).map_err(|error| error.to_string())?;
        if claim.is_empty() {
            return Err(format!("empty_identity: {name} is empty"));
        }
        Ok((name, claim))
    };
    Ok([
        header(USER, account.user())?,
        header(GROUP, all)?,
        header(GROUP, of_namespace)?,
        header(GROUP, authenticated)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_made_as_the_account_and_in_its_groups() {
        let account = Account::parse("shop/deployer").unwrap();
        let headers = headers(&account, false).unwrap();
        let claims: Vec<&str> = headers.iter().map(|(_, it)| it.to_str().unwrap()).collect();
        assert_eq!(
            claims,
            [
                "system:serviceaccount:shop:deployer",
                "system:serviceaccounts",
                "system:serviceaccounts:shop",
                "system:authenticated"
            ]
        );
        assert_eq!(headers.iter().filter(|(name, _)| *name == USER).count(), 1);
    }

    #[test]
    fn credentials_that_impersonate_already_send_nothing_for_another() {
        let account = Account::parse("shop/deployer").unwrap();
        assert!(headers(&account, true).unwrap_err().contains("without `as`"));
    }
}
