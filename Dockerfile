# The service and its workers. The build pins every package to the version in requirements.lock.
FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE requirements.lock ./
COPY src src
# The wheel contains the sample database of the console.
COPY examples/data/chinook.sqlite examples/data/chinook.LICENSE examples/data/
RUN python -m venv /opt/opposable \
    && sed -E '/^ +(--hash|#)/d; s/ \\$//' requirements.lock > constraints.txt \
    && /opt/opposable/bin/pip install --no-cache-dir --constraint constraints.txt \
       ".[serve,postgres,mysql,valkey,durable,http,mcp,sql,skills,otel]"

FROM python:3.13-slim
RUN useradd --create-home --uid 10001 opposable
COPY --from=build /opt/opposable /opt/opposable
ENV PATH=/opt/opposable/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    OPPOSABLE_HOME=/home/opposable/state \
    OPPOSABLE_LOG=json
# By number, so that a cluster can check that it is not root.
USER 10001
WORKDIR /home/opposable
EXPOSE 8000
ENTRYPOINT ["opposable"]
CMD ["serve", "--host", "0.0.0.0", "--durable"]
