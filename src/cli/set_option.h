#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace posenc::cli {

/// The values of --set NAME=JSON by their names. Ends the program for one that is given twice or is
/// no JSON.
std::map<std::string, nlohmann::json> settings_in(const std::vector<std::string>& given);

}  // namespace posenc::cli
