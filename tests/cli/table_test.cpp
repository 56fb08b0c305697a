#include <torch/types.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "posenc/io/safetensors.h"
#include "posenc/sinusoid/preset.h"
#include "posenc/sinusoid/table.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

class Table : public InFolder {};
class Presets : public InFolder {};

TEST_F(Table, IsThePresetsTable) {
  for (const auto& entry : presets()) {
    const auto result = posenc({"table", "--preset", entry.name, "--dim", "34", "--length", "300",
                                "--out", file("table.bin")});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out + result.err, "");
    const auto tensors = load_safetensors(file("table.bin")).tensors;
    EXPECT_TRUE(bit_equal(tensors["table"], sinusoid_table(entry.make(34), 300))) << entry.name;
  }
}

TEST_F(Table, TakesPositionsFromAFile) {
  for (const auto& positions : {torch::tensor({5, 0, 700, 5}), torch::tensor({0.5, -3.0, 12.25})}) {
    const auto result =
        posenc({"table", "--preset", "notebook_001", "--dim", "8", "--positions",
                safetensors("p", dict({{"positions", positions}})), "--out", file("table")});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(bit_equal(load_safetensors(file("table")).tensors["table"],
                          sinusoid(preset("notebook_001", 8), positions)));
  }
}

TEST_F(Table, RefusesAndWritesNothing) {
  const auto attempt = [&](const std::string& name, const std::string& dim,
                           const std::vector<std::string>& rows) {
    std::vector<std::string> command = {"table", "--preset", name,         "--dim",
                                        dim,     "--out",    file("table")};
    command.insert(command.end(), rows.begin(), rows.end());
    return posenc(command);
  };
  expect_refused(attempt("notebook_01", "8", {"--length", "4"}), "table", "notebook_001");
  expect_refused(attempt("notebook_001", "7", {"--length", "4"}), "table", "Got 7");
  expect_refused(attempt("notebook_001", "0", {"--length", "4"}), "table", "Got 0");
  expect_refused(attempt("notebook_001", "8", {"--length", "0"}), "table", "Got 0");
  expect_refused(attempt("notebook_001", "8", {"--length", "-3"}), "table", "Got -3");
  expect_refused(attempt("notebook_001", "8", {"--length", "4", "--param", "base=2"}), "table",
                 "has no parameters");
  const auto folder = folder_ / "inputs";
  std::filesystem::create_directory(folder);
  const auto positions = [&](const std::string& name, const at::Tensor& tensor) {
    return safetensors("inputs/p", dict({{name, tensor}}));
  };
  const auto other = positions("position", torch::arange(3));
  expect_refused(attempt("notebook_001", "8", {"--positions", other}), "table",
                 "must have a tensor `positions`");
  const auto square = positions("positions", torch::zeros({2, 2}));
  expect_refused(attempt("notebook_001", "8", {"--positions", square}), "table",
                 "must be (rows). Got (2, 2)");
  const auto endless =
      positions("positions", torch::tensor({1.0, std::numeric_limits<double>::infinity()}));
  expect_refused(attempt("notebook_001", "8", {"--positions", endless}), "table", "finite");
  EXPECT_EQ(names(), std::vector<std::string>{"inputs"});
}

TEST_F(Table, RowsComeFromOneSourceOnly) {
  const std::vector<std::string> base = {"table", "--preset", "notebook_001", "--dim",
                                         "8",     "--out",    file("table")};
  EXPECT_EQ(posenc(base).status, 2);
  auto both = base;
  both.insert(both.end(), {"--length", "3", "--positions", "p"});
  EXPECT_EQ(posenc(both).status, 2);
  EXPECT_TRUE(names().empty());
}

TEST_F(Presets, ListsAll) {
  const auto text = posenc({"presets"});
  EXPECT_EQ(text.status, 0);
  const auto json = posenc({"presets", "--json"});
  EXPECT_EQ(json.status, 0);
  const auto list = nlohmann::json::parse(json.out);
  ASSERT_EQ(list.size(), presets().size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i]["name"], presets()[i].name);
    EXPECT_EQ(list[i]["source"], presets()[i].source);
    EXPECT_EQ(list[i]["formula"], presets()[i].formula);
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, presets()[i].name, text.out);
  }
}

}  // namespace
}  // namespace posenc::testing
