// The list of presets, and the call of one.

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "base/nearest.h"
#include "catalogue/relative/rows.h"
#include "posenc/catalogue/relative_preset.h"

namespace posenc {
namespace {

const relative::PresetRows& relative_rows_of_all() {
  static const relative::PresetRows all = [] {
    relative::PresetRows rows;
    for (auto* family :
         {relative::bucket_presets, relative::document_presets, relative::alibi_presets,
          relative::window_presets, relative::timm_presets, relative::axis_presets,
          relative::deberta_presets, relative::shift_presets, relative::clamp_presets,
          relative::block_presets, relative::content_presets}) {
      for (relative::PresetRow& row : family()) rows.push_back(std::move(row));
    }
    return rows;
  }();
  return all;
}

const relative::PresetRow& relative_row(std::string_view name) {
  const auto& rows = relative_rows_of_all();
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const auto& row) { return row.preset.name == name; });
  if (found == rows.end()) {
    std::vector<std::string> names;
    for (const auto& row : rows) names.push_back(row.preset.name);
    TORCH_CHECK_VALUE(false, "[find_relative_preset] no preset `", std::string(name),
                      "`; the nearest: ", detail::nearest_text(name, names));
  }
  return *found;
}

// A name that the preset lists, or a parameter of a list that has no fixed length.
bool is_taken(const RelativePreset& preset, const std::string& tensor) {
  return std::any_of(preset.tensors.begin(), preset.tensors.end(), [&](const std::string& name) {
    return name == tensor ||
           (name.back() == '*' &&
            tensor.starts_with(std::string_view(name).substr(0, name.size() - 1)));
  });
}

}  // namespace

const std::vector<RelativePreset>& relative_presets() {
  static const std::vector<RelativePreset> all = [] {
    std::vector<RelativePreset> presets;
    for (const auto& row : relative_rows_of_all()) presets.push_back(row.preset);
    return presets;
  }();
  return all;
}

const RelativePreset& find_relative_preset(std::string_view name) {
  return relative_row(name).preset;
}

RelativeOutputs relative_outputs(std::string_view preset, const RelativeInputs& inputs) {
  const relative::PresetRow& row = relative_row(preset);
  for (const auto& [name, tensor] : inputs.tensors) {
    // A parameter may belong to a part of the class that has no positions; an input could be a
    // misspelled mask.
    TORCH_CHECK_VALUE(name.starts_with("w.") || is_taken(row.preset, name), "[", row.preset.name,
                      "] the tensors must be among those that the preset takes. Got `", name, "`");
  }
  const bool is_recorded =
      at::GradMode::is_enabled() &&
      std::any_of(inputs.tensors.begin(), inputs.tensors.end(),
                  [](const auto& entry) { return entry.second.requires_grad(); });
  // Without a gradient to record, the parameters are made ones that need it, for the class's bits.
  const at::AutoGradMode recording(is_recorded);
  try {
    RelativeOutputs outputs = row.compute(relative::Given(row.preset.name, inputs));
    if (!is_recorded) {
      for (auto& [name, tensor] : outputs) tensor = tensor.detach();
    }
    return outputs;
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    if (text.starts_with("[")) throw;
    // Tensors of different dtypes, or more memory than there is: PyTorch does not say whose.
    TORCH_CHECK_VALUE(false, "[", row.preset.name,
                      "] the settings and tensors must fit each other, and into memory. Got ",
                      text);
  }
}

}  // namespace posenc
