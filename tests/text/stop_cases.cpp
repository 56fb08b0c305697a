// Answers stop_strings_test.py, line by line: whether posenc::stop_strings() ends each row of ids
// at each of its tokens.

#include <c10/util/Exception.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "posenc/base/error.h"
#include "posenc/text/generation.h"

int main() {
  using nlohmann::json;
  std::optional<posenc::Tokenizer> tokenizer;
  for (std::string line; std::getline(std::cin, line);) {
    const json given = json::parse(line);
    json result = json::object();
    try {
      if (given.contains("folder")) {
        tokenizer = posenc::Tokenizer::from_folder(given["folder"].get<std::string>());
      } else {
        const auto stops =
            posenc::stop_strings(*tokenizer, given["strings"].get<std::vector<std::string>>());
        for (const json& row : given["rows"]) {
          std::vector<int64_t> columns;
          json ended = json::array();
          for (const int64_t id : row) {
            columns.push_back(id);
            ended.push_back(stops(columns));
          }
          result["ended"].push_back(std::move(ended));
        }
      }
    } catch (const c10::Error& error) {
      result["error"] = error.what_without_backtrace();
    } catch (const posenc::Error& error) {
      result["error"] = error.what();
    }
    std::cout << result.dump() << std::endl;
  }
}
