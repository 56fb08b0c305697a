#pragma once

// Compares one view of a tensor with all presets, and describes what it found.

#include <optional>
#include <vector>

#include "catalogue/identify/candidate.h"
#include "posenc/catalogue/identify.h"

namespace posenc::identification {

struct Match {
  Candidate candidate;
  Distance distance;                 ///< over all rows
  std::vector<const Preset*> group;  ///< the presets that share the recipe
};

struct SearchResult {
  TableView view;
  std::vector<Match> equal;  ///< bit for bit, those with the fewest edits and parameters first
  std::optional<Match> nearest;
  double centred = 0;  ///< correlation with `nearest` after subtracting each column's mean
  double first = 0;    ///< largest distance from it in the first rows

  bool exact() const { return !equal.empty(); }
  const Match& best() const { return exact() ? equal.front() : *nearest; }
  bool better_than(const SearchResult& other) const;
};

/// The presets whose bits the table has, or else the nearest; nullopt if all are far away.
std::optional<SearchResult> search(const TableView& view);

/// Describes what a search found.
Identification report(const SearchResult& found);

}  // namespace posenc::identification
