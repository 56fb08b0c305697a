#include "cli/modules/comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/error.h"
#include "cli/modules/probes.h"
#include "cli/weights.h"

namespace posenc::cli {
namespace {

// How far a twin may lie from its script, by what its forward takes: in units of the last place of
// the output's largest number.
struct Tolerance {
  Input input;
  double last_places;
  const char* reason;
};
constexpr Tolerance tolerances[] = {
    {Input::Ids, 0, "gather, multiply, add: one rounding an operation"},
    {Input::Positions, 0, "a gather"},
    {Input::Embeddings, 0, "one addition an element"},
    {Input::Timesteps, 0, "the same at::linear of the same shapes in the same process"},
    {Input::Sentences, 64, "torch.nn's fast path sums in another order, layer after layer"},
    {Input::Sequences, 64, "the same"},
};

double tolerance_of(Input input) {
  for (const auto& row : tolerances) {
    if (row.input == input) return row.last_places;
  }
  return 0;
}

double epsilon_of(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16: return std::ldexp(1.0, -7);
    case at::kHalf: return std::ldexp(1.0, -10);
    case at::kDouble: return std::ldexp(1.0, -52);
    default: return std::ldexp(1.0, -23);
  }
}

bool is_near(const at::Tensor& theirs, const Difference& difference, double last_places) {
  if (difference.equal || last_places == 0) return difference.equal;
  const double unit = epsilon_of(theirs.scalar_type()) * theirs.abs().max().item<double>();
  return difference.max_abs <= last_places * unit;
}

// `theirs` calls the script.
template <typename Theirs>
Outcome compare(Twin& twin, const Probe& probe, const Theirs& theirs) {
  Outcome outcome;
  outcome.name = probe.name;
  for (const auto& name : twin.inputs) {
    outcome.shape += (outcome.shape.empty() ? "" : " ") + shape_of(probe.call.at(name));
  }
  try {
    const at::Tensor expected = theirs(probe.call);
    outcome.difference = difference(expected, twin.forward(probe.call));
    outcome.good = is_near(expected, outcome.difference, tolerance_of(twin.input));
    if (!outcome.difference.why.empty()) {
      outcome.failure = "the script's and the twin's output: " + outcome.difference.why;
    }
  } catch (const std::exception& error) {
    outcome.failure = message_of(error);
  }
  return outcome;
}

// The twin's name of each argument of the script: those that it needs, in order, the others by the
// script's own names.
struct Arguments {
  std::vector<std::string> needed;
  std::map<std::string, std::string> named;
};

Arguments arguments_of(const std::string& path, const Script& script, const Twin& twin) {
  Arguments result;
  const auto all = script.arguments("forward");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [name, required] = all[i];
    const bool is_input = i < twin.inputs.size();
    const auto alias = twin.aliases.find(name);
    const auto& own = is_input                      ? twin.inputs[i]
                      : alias == twin.aliases.end() ? name
                                                    : alias->second;
    const bool known = is_input || std::find(twin.optional.begin(), twin.optional.end(), own) !=
                                       twin.optional.end();
    if (known && required) result.needed.push_back(own);
    if (known && !required) result.named[name] = own;
    if (known || !required) continue;
    refuse("{}: its {} needs what the twin does not take: {}", path, script.signature("forward"),
           name);
  }
  if (result.needed.size() < twin.inputs.size()) {
    refuse("{}: its {} must take {}", path, script.signature("forward"), listed(twin.inputs));
  }
  return result;
}

std::vector<Outcome> plain_outcomes(const std::string& path, const Script& script, Twin& twin) {
  const Arguments arguments = arguments_of(path, script, twin);
  const auto besides = arguments.needed.begin() + static_cast<std::ptrdiff_t>(twin.inputs.size());
  std::set<std::string> masks;
  for (const auto& [theirs, ours] : arguments.named) {
    if (ours.ends_with("mask")) masks.insert(ours);
  }
  masks.insert(besides, arguments.needed.end());
  std::vector<Outcome> result;
  for (const auto& probe : probes(twin, masks)) {
    const auto lacks = [&](const std::string& name) { return probe.call.count(name) == 0; };
    if (std::any_of(besides, arguments.needed.end(), lacks)) continue;
    result.push_back(compare(twin, probe, [&](const Call& call) {
      std::vector<at::Tensor> values;
      std::map<std::string, at::Tensor> by_name;
      for (const auto& name : arguments.needed) values.push_back(call.at(name));
      for (const auto& [theirs, ours] : arguments.named) {
        if (call.count(ours)) by_name[theirs] = call.at(ours);
      }
      return script.call("forward", values, by_name);
    }));
  }
  return result;
}

// Image and timesteps, in whichever order the script takes them.
at::Tensor call_with_image(const Script& script, const std::string& method, const Call& call) {
  const at::Tensor &image = call.at("image"), &t = call.at("input");
  try {
    return script.call(method, {image, t});
  } catch (const Refused& error) {
    try {
      return script.call(method, {t, image});
    } catch (const Refused&) {
      throw error;
    }
  }
}

std::vector<Outcome> image_outcomes(const Script& script, Twin& twin, const std::string& method) {
  std::vector<Outcome> result;
  for (const auto& timesteps : probes(twin, {})) {
    for (const auto& probe : image_probes(twin, timesteps)) {
      result.push_back(compare(
          twin, probe, [&](const Call& call) { return call_with_image(script, method, call); }));
    }
  }
  return result;
}

}  // namespace

std::vector<Outcome> outcomes_of(const std::string& path, const Script& script, Twin& twin) {
  if (twin.input != Input::Timesteps) return plain_outcomes(path, script, twin);
  const auto arguments = script.arguments("forward");
  const auto needed = std::count_if(arguments.begin(), arguments.end(),
                                    [](const auto& argument) { return argument.required; });
  if (needed == 2) return image_outcomes(script, twin, "forward");
  auto result = plain_outcomes(path, script, twin);
  if (script.has_method("add_to")) {
    for (auto& outcome : image_outcomes(script, twin, "add_to")) {
      result.push_back(std::move(outcome));
    }
  }
  return result;
}

}  // namespace posenc::cli
