//! What reading commands print: a table, JSON or YAML. The answer goes to stdout alone.

use serde::Serialize;

/// `-o`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// The answer as JSON or YAML, or as the table that `table` makes.
pub(crate) fn print<T: Serialize>(
    format: Format,
    answer: &T,
    table: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    write(&match format {
        Format::Table => table(),
        Format::Json => serde_json::to_string_pretty(answer)? + "\n",
        Format::Yaml => serde_saphyr::to_string(answer)?,
    })
}

/// Text on stdout.
pub(crate) fn write(text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // The reader has seen enough (`| head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Columns padded to their widest cell, two spaces apart; the first row is the heading.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["NAME".into(), "MODE".into()], vec!["generic".into(), "observe".into()]];
        assert_eq!(super::table(&rows), "NAME     MODE\ngeneric  observe\n");
    }
}
