//! Policies by the names that people type: one line registers one.

/// Makes the table of one kind of policy out of one line each: the name that people type and the factory with its default
/// settings.
///
/// The table is three items: `NAMES`, `DEFAULT` and `by_name`. Everything that lists or reads names asks these three: the
/// command's flags with their help and error messages, scenario files, the random draws of the swarm, and tests.
///
/// ```
/// trait Greeting {
///     fn words(&self) -> &'static str;
/// }
/// struct Hello;
/// struct Goodbye;
/// impl Greeting for Hello {
///     fn words(&self) -> &'static str {
///         "Hello."
///     }
/// }
/// impl Greeting for Goodbye {
///     fn words(&self) -> &'static str {
///         "Goodbye."
///     }
/// }
/// plait_base::policies! {
///     dyn Greeting, default "hello";
///     "hello" => Hello,
///     "goodbye" => Goodbye,
/// }
/// assert_eq!((NAMES, DEFAULT), (["hello", "goodbye"], "hello"));
/// assert_eq!(by_name("goodbye").unwrap().words(), "Goodbye.");
/// assert!(by_name("welcome").is_none());
/// ```
#[macro_export]
macro_rules! policies {
    (dyn $factory:ident, default $default:literal; $($name:literal => $make:expr,)+) => {
        /// Every name that [`by_name`] knows, in the order in which help and error messages list them.
        pub const NAMES: [&str; [$($name),+].len()] = [$($name),+];

        /// The name of the one that acts where nobody chose.
        pub const DEFAULT: &str = $default;

        /// The factory of that name with its default settings; none where the table has no such name.
        pub fn by_name(name: &str) -> Option<::std::sync::Arc<dyn $factory>> {
            Some(match name {
                $($name => ::std::sync::Arc::new($make),)+
                _ => return None,
            })
        }
    };
}
