// posenc identify: finds the tensors of a file that are sinusoids, and the recipes that made them.

#include "posenc/catalogue/identify.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/print.h"
#include "cli/weights.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

struct IdentifyOptions {
  std::string file;
  bool json = false;
};

// Returns a number if the text is one: posenc::preset() types parameters in the same way.
Json value_of(const std::string& text) {
  const auto number = real_number(text);
  if (!number) return text;
  const bool is_integer = text.find_first_not_of("-0123456789") == std::string::npos;
  return is_integer ? Json(static_cast<int64_t>(*number)) : Json(*number);
}

Json json_of(const std::string& name, const Identification& found) {
  auto params = Json::object();
  for (const auto& [key, value] : found.params) params[key] = value_of(value);
  return {{"tensor", name},           {"sinusoid", found.sinusoid}, {"presets", found.presets},
          {"nearest", found.nearest}, {"max_abs", found.max_abs},   {"max_ulp", found.max_ulp},
          {"params", params}};
}

// Describes a sinusoid, or a table that began as one, with the C++ that recreates it.
std::string text_of(const std::string& name, const at::Tensor& tensor,
                    const Identification& found) {
  std::string text = fmt::format("{}  {} {}\n  {}\n", shown(name), dtype_text(tensor),
                                 shape_of(tensor), found.verdict);
  if (found.presets.size() > 1) text += fmt::format("  presets: {}\n", listed(found.presets));
  if (found.max_ulp > 0) {
    text += fmt::format("  max_abs {:.3g}, max_ulp {}\n", found.max_abs, found.max_ulp);
  }
  if (found.leading_rows > 0)
    text += fmt::format("  preceded by {} other rows\n", found.leading_rows);
  return text + fmt::format("  read as {}: posenc::sinusoid_table({}, {})\n", found.shape,
                            found.options, found.length);
}

std::string summary(std::size_t all, std::size_t others) {
  if (others == 0) {
    return all == 1 ? "" : fmt::format("all {} tensors are sinusoidal\n", all);
  }
  const std::string subject =
      all == 1 ? "the tensor is"
               : fmt::format("{} of {} tensors {}", others, all, others == 1 ? "is" : "are");
  return subject + " not sinusoidal\n";
}

void identify_file(const IdentifyOptions& options) {
  const StateDict weights = read_weights(options.file);
  auto list = Json::array();
  std::size_t others = 0;
  std::string text;
  for (const auto& item : weights) {
    const Identification found = identify(item.value(), item.key());
    if (options.json) {
      list.push_back(json_of(item.key(), found));
    } else if (found.nearest.empty()) {
      ++others;
    } else {
      text += for_terminal(text_of(item.key(), item.value(), found));
    }
  }
  if (options.json) {
    print("{}\n", list.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    print("{}{}", text, summary(weights.size(), others));
  }
}

void add_identify(CLI::App& app) {
  auto options = std::make_shared<IdentifyOptions>();
  auto* sub = app.add_subcommand(
      "identify", "Identify the preset and the parameters that produced each sinusoidal tensor.");
  sub->add_option("FILE", options->file, kReadableFiles)->required()->check(input_path());
  sub->add_flag("--json", options->json,
                "print every tensor, as an array of {tensor, sinusoid, presets, nearest, max_abs, "
                "max_ulp, params}");
  sub->footer("Example:\n  posenc identify model.safetensors");
  sub->callback([options] { identify_file(*options); });
}

const Command kIdentify{4, add_identify};

}  // namespace
}  // namespace posenc::cli
