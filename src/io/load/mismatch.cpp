#include "io/load/mismatch.h"

#include <algorithm>
#include <set>

#include "core/nearest.h"
#include "io/base/quote.h"

namespace posenc::io {
namespace {

using Names = std::vector<std::string>;

constexpr std::size_t kListed = 1000;  // the most names of one kind in a message
constexpr std::size_t kHinted = 20;    // this many of them with a suggestion

// The prefix to strip from the unexpected names so that every missing one is found; "" for none.
std::string prefix_of(const Names& missing, const Names& unexpected) {
  if (missing.empty() || unexpected.empty()) return "";
  const std::string& wanted = missing.front();
  const std::set<std::string> names(unexpected.begin(), unexpected.end());
  std::size_t guesses = 0;
  for (const auto& name : unexpected) {
    if (name.size() <= wanted.size() || !name.ends_with("." + wanted)) continue;
    if (++guesses > kHinted) break;  // each guess costs a walk over all missing names
    const std::string prefix = name.substr(0, name.size() - wanted.size());
    if (std::all_of(missing.begin(), missing.end(),
                    [&](const auto& other) { return names.count(prefix + other) != 0; })) {
      return prefix;
    }
  }
  return "";
}

// Only names of similar length, or the same name after a prefix; others would be noise.
std::string hint(const std::string& name, const Names& candidates) {
  constexpr std::size_t kLongest = 256;  // bounds the work on names from foreign files
  Names plausible;
  for (const auto& candidate : candidates) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t shorter = std::min(name.size(), candidate.size());
    if (longer <= kLongest && (longer - shorter <= longer / 3 || name.ends_with(candidate) ||
                               candidate.ends_with(name))) {
      plausible.push_back(candidate);
    }
  }
  const auto found = detail::nearest(name, plausible, 1);
  return found.empty() ? "" : " (nearest: " + in_quotes(found.front()) + ")";
}

using NamesInFile = std::map<std::string, Names>;

std::string listing(const std::string& title, const Names& names, const Names& candidates,
                    const NamesInFile& names_in_file) {
  std::string text = "\n  " + title + " (" + std::to_string(names.size()) + "):";
  for (std::size_t i = 0; i < std::min(names.size(), kListed); ++i) {
    const auto mapped = names_in_file.find(names[i]);
    const bool is_mapped = mapped != names_in_file.end();
    text += (i == 0 ? " " : ", ") + in_quotes(names[i]);
    if (is_mapped) text += " (from " + in_quotes_each(mapped->second) + ")";
    if (i < kHinted && candidates.size() <= kListed) {
      text += hint(is_mapped ? mapped->second.front() : names[i], candidates);
    }
  }
  return text + (names.size() > kListed ? ", ..." : "");
}

// Lists each remedy once.
std::string remedies(const std::vector<Fault>& faults, const std::string& first) {
  Names all;
  if (!first.empty()) all.push_back(first);
  for (const auto& fault : faults) {
    const bool known = std::find(all.begin(), all.end(), fault.remedy) != all.end();
    if (!fault.remedy.empty() && !known) all.push_back(fault.remedy);
  }
  std::string text;
  for (const auto& remedy : all) text += (text.empty() ? "" : "; ") + remedy;
  return text;
}

}  // namespace

WeightsError Mismatch::error(const std::string& subject) const {
  std::vector<WeightsErrorCode> codes;
  std::string text = subject + "does not fit the module, which is left as it was:", remedy;
  if (!missing.empty() && !allow_missing) {
    codes.push_back(WeightsErrorCode::MissingKeys);
    text += listing("missing", missing, unexpected, names_in_file);
    const std::string prefix = prefix_of(missing, unexpected);
    if (!prefix.empty()) {
      remedy = "every missing name is there after " + in_quotes(prefix) +
               ": pass LoadOptions().prefix(\"" + prefix + "\")";
    }
  }
  if (!unexpected.empty() && !allow_unexpected) {
    codes.push_back(WeightsErrorCode::UnexpectedKeys);
    text += listing("unexpected", unexpected, missing, {});
  }
  for (std::size_t i = 0; i < faults.size(); ++i) {
    codes.push_back(faults[i].code);
    if (i < kListed) text += "\n  " + faults[i].text;
    if (i == kListed) text += "\n  ...";
  }
  return {*std::min_element(codes.begin(), codes.end()), text, remedies(faults, remedy)};
}

}  // namespace posenc::io
