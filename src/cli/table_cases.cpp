#include "cli/table_cases.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/arguments.h"
#include "cli/error.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/error.h"
#include "posenc/weights/safetensors.h"
#include "weights/common/file.h"
#include "weights/common/json.h"
#include "weights/convert.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

int64_t extent_of(const Json& value, const std::string& key, int64_t most) {
  const bool fits = value.is_number_integer() && value >= 1 && value <= most;
  if (!fits) fail("{} must be an integer from 1 to {}. Got {}", key, most, value.dump());
  return value.get<int64_t>();
}

PresetValue value_of(const Json& value, const std::string& key) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  const bool fits =  // nlohmann would compare uint64_t as int64_t
      !value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX;
  if (value.is_number_integer() && fits) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  fail("params: {} must be a number or a string. Got {}", key, value.dump());
}

Precision precision_of(const Json& value) {
  if (value == "reference") return Precision::Reference;
  if (value == "exact") return Precision::Exact;
  fail("precision must be reference or exact. Got {}", value.dump());
}

at::Tensor table_of_case(const Json& entry) {
  static const std::set<std::string> known = {"name",   "preset", "dim",
                                              "length", "params", "precision"};
  for (const auto& [key, value] : entry.items()) {
    if (!known.count(key)) fail("a case has no field {}", key);
  }
  if (!entry.contains("preset") || !entry["preset"].is_string()) fail("preset must be a name");
  if (!entry.contains("dim")) fail("dim must be an integer");
  PresetParams params;
  if (entry.contains("params")) {
    if (!entry["params"].is_object()) fail("params must be an object");
    for (const auto& [key, value] : entry["params"].items()) {
      params.emplace(key, value_of(value, key));
    }
  }
  auto options = preset(entry["preset"].get<std::string>(),
                        extent_of(entry["dim"], "dim", kMostChannels), params);
  if (entry.contains("precision")) options.precision(precision_of(entry["precision"]));
  std::optional<int64_t> length;
  if (entry.contains("length")) length = extent_of(entry["length"], "length", kMostRows);
  return table_of(options, length);
}

Json read_cases(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) fail("{}: must be a file of cases", path);
  std::ifstream stream(path, std::ios::binary);
  if (!stream) fail("{}: cannot be read", path);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto list = io::in_file(path, [&] { return io::json_tree<Json>(text, "its cases"); });
  if (!list.is_array()) {
    fail("{}: must contain a JSON array of cases. Got {}", path, list.type_name());
  }
  std::set<std::string> names;
  for (const auto& entry : list) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string()) {
      fail("{}: each case must be an object with a name. Got {}", path, entry.dump());
    }
    if (!names.insert(entry["name"].get<std::string>()).second) {
      fail("{}: the case {} occurs twice", path, entry["name"].dump());
    }
  }
  return list;
}

}  // namespace

int64_t cells_of(const SinusoidOptions& options) {
  int64_t cells = 1;
  for (const int64_t extent : options.grid()) {
    if (extent > kMostRows / cells) fail("a grid must have at most {} cells", kMostRows);
    cells *= extent;
  }
  return cells;
}

at::Tensor table_of(const SinusoidOptions& options, std::optional<int64_t> length) {
  if (!length && options.grid().empty()) fail("length must be given");
  return sinusoid_table(options, length ? *length : cells_of(options));
}

void make_cases(const std::string& path, const std::string& output) {
  if (io::is_torch_save(output)) {
    fail(
        "{}: the tables of --cases must be written as safetensors, whose metadata has their errors",
        output);
  }
  StateDict tables;
  std::map<std::string, std::string> messages;
  for (const auto& entry : read_cases(path)) {
    const auto name = entry["name"].get<std::string>();
    try {
      tables.insert(name, table_of_case(entry));
    } catch (const std::exception& error) {
      messages[name] = message_of(error);
    }
  }
  save_safetensors(output, tables, messages);
}

}  // namespace posenc::cli
