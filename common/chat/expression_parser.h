// SPDX-License-Identifier: Apache-2.0
// Expressions, from the loosest binding to the tightest: a if b else c; or; and; not; comparisons
// and `in`; + -; ~; * / // %; **; signs; then .name, [index], (call), |filter and `is` test.
// Source: https://jinja.palletsprojects.com/en/stable/templates/#expressions
#ifndef SETU_COMMON_CHAT_EXPRESSION_PARSER_H_
#define SETU_COMMON_CHAT_EXPRESSION_PARSER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/chat/ast.h"
#include "common/chat/token_stream.h"

namespace setu::chat {

class ExpressionParser {
 public:
  // `stream` must outlive this; parsing moves it.
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  // One expression, or several with commas, which are a list.
  absl::StatusOr<ExprPtr> ParseTuple();
  absl::StatusOr<ExprPtr> Parse();
  // Without `a if b else c`: what stands before the `if` of a loop.
  absl::StatusOr<ExprPtr> ParseUnconditional();
  // Behind "(": up to and with ")".
  absl::StatusOr<std::vector<Argument>> ParseArguments();

 private:
  using Parser = absl::StatusOr<ExprPtr> (ExpressionParser::*)();
  using Operators = std::vector<std::pair<std::string_view, Operator>>;

  absl::StatusOr<ExprPtr> ParseOr();
  absl::StatusOr<ExprPtr> ParseAnd();
  absl::StatusOr<ExprPtr> ParseNot();
  absl::StatusOr<ExprPtr> ParseComparison();
  absl::StatusOr<ExprPtr> ParseSum();
  absl::StatusOr<ExprPtr> ParseConcatenation();
  absl::StatusOr<ExprPtr> ParseProduct();
  absl::StatusOr<ExprPtr> ParsePower();
  absl::StatusOr<ExprPtr> ParseSigned();
  absl::StatusOr<ExprPtr> ParsePrimary();
  absl::StatusOr<ExprPtr> ParseBrackets(std::string_view closing);
  absl::StatusOr<ExprPtr> ParseDict();
  absl::StatusOr<ExprPtr> ParseLinks(ExprPtr base, bool with_filters);
  absl::StatusOr<Link> ParseSubscript();
  absl::StatusOr<Link> ParseFilter();
  absl::StatusOr<Link> ParseTest();
  bool BeginsTestArgument() const;
  // operand (operator operand)*
  absl::StatusOr<ExprPtr> ParseOperations(Parser operand, const Operators& operators);
  absl::StatusOr<ExprPtr> ParseLogic(Parser operand, std::string_view name, bool is_and);

  TokenStream& stream_;
};

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_EXPRESSION_PARSER_H_
