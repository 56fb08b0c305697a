#include "weights/load/mismatch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"

namespace posenc::io {
namespace {

using Names = std::vector<std::string>;
using Code = WeightsErrorCode;

constexpr std::size_t kListed = 10;         // of one kind in a message
constexpr std::size_t kCandidates = 1'000;  // names that are compared with each of those listed

// A prefix, the number of names that are found with it, and the other prefixes with as many.
struct Prefix {
  std::string text;
  std::size_t found = 0;
  Names equals = {};
};

// The prefix with which most of `names` are among `others`.
Prefix best_prefix(const Names& names, const Names& others) {
  constexpr std::size_t kTried = 8, kGuesses = 20;  // each guess costs a walk over all names
  std::set<std::string> guesses;
  for (std::size_t i = 0; i < std::min(kTried, names.size()); ++i) {
    const std::string ending = "." + names[i];
    for (const auto& other : others) {
      if (guesses.size() == kGuesses) break;
      if (other.size() < ending.size() || !other.ends_with(ending)) continue;
      guesses.insert(other.substr(0, other.size() - names[i].size()));
    }
  }
  const std::set<std::string> known(others.begin(), others.end());
  Prefix best;
  for (const auto& guess : guesses) {
    const auto found = std::count_if(names.begin(), names.end(), [&](const auto& name) {
      return known.count(guess + name) != 0;
    });
    if (static_cast<std::size_t>(found) > best.found) {
      best = {guess, static_cast<std::size_t>(found)};
    } else if (found > 0 && static_cast<std::size_t>(found) == best.found) {
      best.equals.push_back(guess);
    }
  }
  return best;
}

// The prefixes that explain as much, for a message.
std::string others_of(const Prefix& prefix) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, prefix.equals.size()); ++i) {
    text += (text.empty() ? "`" : ", `") + printable(prefix.equals[i]) + "`";
  }
  return text + (prefix.equals.size() > kShown ? " and others" : "");
}

// Only names that differ by a fifth of their letters at most; others would be noise.
std::string hint(const std::string& name, const Names& candidates) {
  constexpr std::size_t kLongest = 256;  // bounds the work on names from foreign files
  const std::size_t farthest = name.size() / 5 + 1;
  if (candidates.size() > kCandidates) return "";
  Names plausible;
  for (const auto& candidate : candidates) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t shorter = std::min(name.size(), candidate.size());
    if (longer <= kLongest && longer - shorter <= farthest) plausible.push_back(candidate);
  }
  const auto found = detail::nearest(name, plausible, 1, farthest);
  return found.empty() ? "" : " (did you mean " + in_quotes(found.front()) + "?)";
}

std::string counted(const std::string& what, std::size_t count) {
  return "\n  " + what + " (" + std::to_string(count) + "):";
}

Names quoted(const Names& names, const Names& candidates) {
  Names lines;
  for (std::size_t i = 0; i < names.size(); ++i) {
    lines.push_back(i < kListed ? in_quotes(names[i]) + hint(names[i], candidates) : "");
  }
  return lines;
}

// Joins the texts, each once.
std::string joined(const Names& texts) {
  std::string all;
  std::set<std::string> known = {""};
  for (const auto& text : texts) {
    if (known.insert(text).second) all += (all.empty() ? "" : "; ") + text;
  }
  return all;
}

}  // namespace

std::string lines_of(const std::vector<std::string>& texts, std::size_t indent) {
  const std::string start = "\n" + std::string(indent, ' ');
  std::string lines;
  for (std::size_t i = 0; i < std::min(texts.size(), kListed); ++i) lines += start + texts[i];
  if (texts.size() > kListed) {
    lines += start + "and " + std::to_string(texts.size() - kListed) + " more";
  }
  return lines;
}

// The names of the module have a prefix that those of the source lack.
Mismatch::Cause Mismatch::missing_prefix() const {
  if (is_mapped || unexpected.size() != given) return {};
  Names own;
  for (const auto& name : unexpected) own.push_back(name.substr(prefix.size()));
  const Prefix above = best_prefix(own, missing);
  if (above.found == 0 || above.found != missing.size()) return {};
  const std::string shown = printable(above.text);
  return {"all names of the module begin with `" + shown + "`, without which they are there:",
          "LoadOptions().key_map({{\"*\", \"" + shown + "*\"}})"};
}

Mismatch::Cause Mismatch::cause_of_missing() const {
  const Prefix below = best_prefix(missing, unexpected);
  if (below.found > 0 && 2 * below.found >= missing.size()) {
    const bool has_others =
        unexpected.size() != given ||
        std::any_of(unexpected.begin(), unexpected.end(),
                    [&](const auto& name) { return !name.starts_with(below.text); });
    const std::string shown = printable(below.text), count = std::to_string(missing.size());
    const std::string subject =
        below.found != missing.size()
            ? std::to_string(below.found) + " of the " + count + " missing names are there below"
        : has_others ? "all missing names are there below"
                     : "all names begin with";
    if (!below.equals.empty()) {  // only the user knows which
      return {subject + " `" + shown + "` and below " + others_of(below) + ": choose one",
              "LoadOptions().prefix() selects it"};
    }
    // A prefix selects: it would lose the names that are found without one.
    if (missing.size() != expected) {
      return {subject + " `" + shown + "`:",
              "LoadOptions().key_map({{\"" + shown + "*\", \"*\"}})"};
    }
    return {subject + " `" + shown + "`:", "LoadOptions().prefix(\"" + shown + "\")"};
  }
  if (auto cause = missing_prefix(); !cause.text.empty()) return cause;
  constexpr std::size_t kFew = 4;  // of which nothing can be concluded
  const auto lines = missing_lines(unexpected);
  const bool is_renamed =
      std::any_of(lines.begin(), lines.end(), [](const auto& line) { return line.ends_with(")"); });
  const bool is_foreign = 2 * missing.size() > expected && 2 * unexpected.size() > given;
  if (expected < kFew || given < kFew || !is_foreign || is_renamed) return {};
  return {"looks like the weights of another class: " + std::to_string(expected - missing.size()) +
              " of the module's " + std::to_string(expected) + " names are among its " +
              std::to_string(given),
          "if only the names differ, LoadOptions().key_map() renames them"};
}

const Fault* Mismatch::object_with_missing() const {
  const bool is_unexplained =
      has_missing() && (selects_nothing() || cause_of_missing().text.empty());
  return is_unexplained && !objects.empty() ? &objects.front() : nullptr;
}

Mismatch::Cause Mismatch::cause() const {
  for (const auto& fault : faults) {
    if (fault.code == Code::WholeModule) return {fault.text, fault.remedy};
  }
  if (const Fault* object = object_with_missing()) return {object->text, object->remedy};
  if (selects_nothing()) {
    return {"no name begins with " + in_quotes(prefix), "a prefix is given with its dot"};
  }
  return has_missing() ? cause_of_missing() : Cause();
}

std::vector<std::string> Mismatch::missing_lines(const Names& candidates) const {
  Names lines = quoted(missing, candidates);
  for (std::size_t i = 0; i < std::min(lines.size(), kListed); ++i) {
    const auto mapped = names_in_file.find(missing[i]);
    if (mapped == names_in_file.end()) continue;
    lines[i] = in_quotes(missing[i]) + " (from " + in_quotes_each(mapped->second) + ")" +
               hint(mapped->second.front(), candidates);
  }
  return lines;
}

// Shapes and dtypes have headings, since there may be many of them.
std::string Mismatch::fault_lines() const {
  std::map<Code, Names> by_code;
  for (const auto& fault : faults) by_code[fault.code].push_back(fault.text);
  std::string text;
  for (const auto& [code, lines] : by_code) {
    if (code == Code::WholeModule) continue;  // the cause
    const bool is_shape = code == Code::ShapeMismatch, is_dtype = code == Code::DtypeMismatch;
    if (is_shape || is_dtype) text += counted(is_shape ? "shape" : "dtype", lines.size());
    text += lines_of(lines, is_shape || is_dtype ? 4 : 2);
  }
  return text;
}

WeightsError Mismatch::error(const std::string& subject) const {
  std::vector<Code> codes;
  LoadDetails details;
  const Cause why = cause();
  const bool is_explained = !why.text.empty();  // then names that are near say nothing more
  Names remedies = {why.remedy};
  const std::string misfit = is_of_folder
                                 ? "does not have the tensors of the model in its config.json"
                                 : "does not fit the module, which is left as it was";
  const std::string after = is_of_folder ? "" : "\n  the module is left as it was";
  std::string text = is_explained ? why.text + after : subject + misfit;
  if (has_missing()) {
    codes.push_back(Code::MissingKeys);
    details.missing = missing;
    text += counted("missing", missing.size()) +
            lines_of(missing_lines(is_explained ? Names() : unexpected), 4);
  }
  if (has_unexpected()) {
    codes.push_back(Code::UnexpectedKeys);
    details.unexpected = unexpected;
    text += counted("unexpected", unexpected.size()) +
            lines_of(quoted(unexpected, is_explained ? Names() : missing), 4);
  }
  if (selects_nothing()) codes.push_back(Code::MissingKeys);
  if (const Fault* object = object_with_missing()) {
    codes.push_back(object->code);
    details.mismatched.push_back(object->text);
  }
  for (const auto& fault : faults) {
    codes.push_back(fault.code);
    details.mismatched.push_back(fault.text);
    remedies.push_back(fault.remedy);
  }
  return WeightsError(*std::min_element(codes.begin(), codes.end()), text + fault_lines(),
                      joined(remedies))
      .with_details(std::move(details));
}

}  // namespace posenc::io
