#include "cli/modules/comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/error.h"
#include "cli/modules/probes.h"
#include "cli/weights.h"
#include "core/floating_point.h"

namespace posenc::cli {
namespace {

// How much a counterpart may differ from its script, by the kind of input, in units of the last
// place of the output's largest number.
struct Tolerance {
  Input input;
  double last_places;
  const char* reason;
};
constexpr Tolerance tolerances[] = {
    {Input::Ids, 0, "gather, multiply, add: one rounding per operation"},
    {Input::Positions, 0, "a gather"},
    {Input::Embeddings, 0, "one addition per element"},
    {Input::Vectors, 0, "the same operations of the same shapes in the same process"},
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

bool is_near(const at::Tensor& theirs, const Difference& difference, double last_places) {
  if (difference.equal || last_places == 0 || !theirs.is_floating_point()) return difference.equal;
  const double unit = epsilon_of(theirs.scalar_type()) * theirs.abs().max().item<double>();
  return difference.max_abs <= last_places * unit;
}

// `theirs` calls the script.
template <typename Theirs>
Outcome compare(ModuleSpec& spec, const Probe& probe, const Theirs& theirs) {
  Outcome outcome;
  outcome.name = probe.name;
  for (const auto& name : spec.inputs) {
    outcome.shape += (outcome.shape.empty() ? "" : " ") + shape_of(probe.call.at(name));
  }
  try {
    const at::Tensor expected = theirs(probe.call);
    outcome.difference = difference(expected, spec.forward(probe.call));
    outcome.good = is_near(expected, outcome.difference, tolerance_of(spec.input));
    if (!outcome.difference.why.empty()) {
      outcome.failure = "outputs of the script and of the C++ class: " + outcome.difference.why;
    }
  } catch (const std::exception& error) {
    outcome.failure = message_of(error);
  }
  return outcome;
}

// Maps the script's arguments to the counterpart's names: required ones in order, the others by the
// script's names.
struct Arguments {
  std::vector<std::string> needed;
  std::map<std::string, std::string> named;
};

Arguments arguments_of(const std::string& path, const Script& script, const ModuleSpec& spec) {
  Arguments result;
  const auto all = script.arguments("forward");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [name, required] = all[i];
    const bool is_input = i < spec.inputs.size();
    const auto alias = spec.aliases.find(name);
    const auto& own = is_input                      ? spec.inputs[i]
                      : alias == spec.aliases.end() ? name
                                                    : alias->second;
    const bool known = is_input || std::find(spec.optional.begin(), spec.optional.end(), own) !=
                                       spec.optional.end();
    if (known && required) result.needed.push_back(own);
    if (known && !required) result.named[name] = own;
    if (known || !required) continue;
    fail("{}: its {} requires an argument that the C++ class does not take: {}", path,
         script.signature("forward"), name);
  }
  if (result.needed.size() < spec.inputs.size()) {
    fail("{}: its {} must take {}", path, script.signature("forward"), listed(spec.inputs));
  }
  return result;
}

std::vector<Outcome> plain_outcomes(const std::string& path, const Script& script,
                                    ModuleSpec& spec) {
  const Arguments arguments = arguments_of(path, script, spec);
  const auto besides = arguments.needed.begin() + static_cast<std::ptrdiff_t>(spec.inputs.size());
  std::set<std::string> masks;
  for (const auto& [theirs, ours] : arguments.named) {
    if (ours.ends_with("mask")) masks.insert(ours);
  }
  masks.insert(besides, arguments.needed.end());
  std::vector<Outcome> result;
  for (const auto& probe : probes(spec, masks)) {
    const auto lacks = [&](const std::string& name) { return probe.call.count(name) == 0; };
    if (std::any_of(besides, arguments.needed.end(), lacks)) continue;
    result.push_back(compare(spec, probe, [&](const Call& call) {
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

// Passes image and timesteps in whichever order the script takes them.
at::Tensor call_with_image(const Script& script, const std::string& method, const Call& call) {
  const at::Tensor &image = call.at("image"), &t = call.at("input");
  try {
    return script.call(method, {image, t});
  } catch (const CommandError& error) {
    try {
      return script.call(method, {t, image});
    } catch (const CommandError&) {
      throw error;
    }
  }
}

std::vector<Outcome> image_outcomes(const Script& script, ModuleSpec& spec,
                                    const std::string& method) {
  std::vector<Outcome> result;
  for (const auto& timesteps : probes(spec, {})) {
    for (const auto& probe : image_probes(spec, timesteps)) {
      result.push_back(compare(
          spec, probe, [&](const Call& call) { return call_with_image(script, method, call); }));
    }
  }
  return result;
}

}  // namespace

std::vector<Outcome> outcomes_of(const std::string& path, const Script& script, ModuleSpec& spec) {
  if (spec.input != Input::Timesteps) return plain_outcomes(path, script, spec);
  const auto arguments = script.arguments("forward");
  const auto needed = std::count_if(arguments.begin(), arguments.end(),
                                    [](const auto& argument) { return argument.required; });
  if (needed == 2) return image_outcomes(script, spec, "forward");
  auto result = plain_outcomes(path, script, spec);
  if (script.has_method("add_to")) {
    for (auto& outcome : image_outcomes(script, spec, "add_to")) {
      result.push_back(std::move(outcome));
    }
  }
  return result;
}

}  // namespace posenc::cli
