// posenc relative: the bias, the scores and the tables of a model's relative positions.

#include <CLI/Error.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/output.h"
#include "cli/weights.h"
#include "posenc/catalogue/relative_preset.h"
#include "posenc/weights/save.h"
#include "weights/common/file.h"
#include "weights/common/json.h"

namespace posenc::cli {
namespace {

struct RelativeArguments {
  std::string config, input, output;
};

// nlohmann would read a larger number as a negative one.
bool is_integer(const nlohmann::json& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
}

// A value of settings.json: a flag, a number, a word, or a list of integers or words.
RelativeSetting setting_of(const std::string& path, const std::string& name,
                           const nlohmann::json& value) {
  const auto all = [&](auto is_kind) { return std::all_of(value.begin(), value.end(), is_kind); };
  if (value.is_boolean()) return value.get<bool>();
  if (is_integer(value)) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && all(is_integer)) return value.get<std::vector<int64_t>>();
  if (value.is_array() && all([](const auto& v) { return v.is_string(); }))
    return value.get<std::vector<std::string>>();
  fail("{}: `{}` must be true or false, a number, a word, or a list of integers or words. Got {}",
       path, name, io::shown(value));
}

RelativeInputs inputs_of(const RelativeArguments& arguments) {
  constexpr uint64_t kMost = 1'000'000;
  const auto json = io::in_file(arguments.config, [&] {
    return io::json_tree<nlohmann::json>(io::read_text(arguments.config, kMost), "its settings");
  });
  if (!json.is_object()) fail("{} must be an object of settings", arguments.config);
  RelativeInputs inputs;
  for (const auto& [name, value] : json.items())
    inputs.settings.emplace(name, setting_of(arguments.config, name, value));
  if (!arguments.input.empty()) {
    for (const auto& entry : read_tensors(arguments.input, {}))
      inputs.tensors.emplace(entry.key(), entry.value());
  }
  return inputs;
}

void compute(const RelativeArguments& arguments) {
  check_output(arguments.output, {arguments.config, arguments.input});
  const RelativeInputs inputs = inputs_of(arguments);
  const auto preset = inputs.settings.find("preset");
  if (preset == inputs.settings.end()) fail("{} must have `preset`", arguments.config);
  const auto* name = std::get_if<std::string>(&preset->second);
  if (!name)
    fail("{}: `preset` must be a name; `posenc presets --relative` lists them", arguments.config);
  StateDict result;
  for (const auto& [key, tensor] : relative_outputs(*name, inputs))
    result.insert(key, tensor.contiguous());
  save_tensors(arguments.output, result);
}

void add_relative(CLI::App& app) {
  auto arguments = std::make_shared<RelativeArguments>();
  auto* sub = app.add_subcommand("relative",
                                 "Compute a model's relative positions: their bias, and the scores "
                                 "of attention up to the softmax.");
  sub->add_option("--config", arguments->config,
                  "settings.json with `preset`, `dtype` (float32, bfloat16, float16) and the "
                  "settings of the preset; `posenc presets --relative` lists both")
      ->required()
      ->check(input_path());
  sub->add_option("--in", arguments->input,
                  "safetensors: the inputs by name, and the parameters of the original class as "
                  "`w.` and their name there")
      ->check(input_path());
  sub->add_option("--out", arguments->output,
                  "safetensors with `bias`, `scores`, `output`, `mask` and `table`, where the "
                  "preset has them; torch.save's format for .pt and .pth")
      ->required()
      ->check(output_path());
  sub->footer(
      "Example:\n"
      "  posenc relative --config settings.json --in t5.safetensors --out bias.safetensors");
  sub->callback([arguments] { compute(*arguments); });
}

const Command kRelative{2, add_relative};

}  // namespace
}  // namespace posenc::cli
