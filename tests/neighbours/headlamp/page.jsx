// Headlamp's own routes, sidebar, store, theme and plugin loader, from the package that it publishes for plugins. That
// package lacks the frame around them (top bar, drawers), so this file puts them together.
import '@kinvolk/headlamp-plugin/lib/i18n/config';
// Before the routes, as in Headlamp: its modules import each other in circles, which work in this order only.
import Plugins from '@kinvolk/headlamp-plugin/lib/plugin/Plugins';

import { ActivitiesRenderer } from '@kinvolk/headlamp-plugin/lib/components/activity/Activity';
import RouteSwitcher, { PreviousRouteProvider } from '@kinvolk/headlamp-plugin/lib/components/App/RouteSwitcher';
import { useCurrentAppTheme } from '@kinvolk/headlamp-plugin/lib/components/App/themeSlice';
import Sidebar from '@kinvolk/headlamp-plugin/lib/components/Sidebar';
import i18n from '@kinvolk/headlamp-plugin/lib/i18n/config';
import { request } from '@kinvolk/headlamp-plugin/lib/lib/k8s/api/v1/clusterRequests';
import { queryClient } from '@kinvolk/headlamp-plugin/lib/lib/queryClient';
import { setStore } from '@kinvolk/headlamp-plugin/lib/lib/router/createRouteURL';
import { createMuiTheme } from '@kinvolk/headlamp-plugin/lib/lib/themes';
import { setConfig } from '@kinvolk/headlamp-plugin/lib/redux/configSlice';
import store from '@kinvolk/headlamp-plugin/lib/redux/stores/store';
import CssBaseline from '@mui/material/CssBaseline';
import { ThemeProvider } from '@mui/material/styles';
import { QueryClientProvider } from '@tanstack/react-query';
import { SnackbarProvider } from 'notistack';
import { createRoot } from 'react-dom/client';
import { I18nextProvider } from 'react-i18next';
import { Provider, useSelector } from 'react-redux';
import { BrowserRouter } from 'react-router-dom';

const FRAME = {
  display: 'grid',
  gridTemplateColumns: 'min-content 1fr',
  gridTemplateRows: '1fr min-content',
  height: '100dvh',
  position: 'relative',
};
const MAIN = { gridColumn: '2', gridRow: '1', overflow: 'auto', padding: '1em' };

function Page() {
  const theme = createMuiTheme(useCurrentAppTheme());
  const ready = useSelector(state => state.plugins.loaded && state.config.clusters !== null);
  return (
    <ThemeProvider theme={theme}>
      <CssBaseline />
      <SnackbarProvider>
        <BrowserRouter>
          <PreviousRouteProvider>
            <Plugins />
            <div style={FRAME}>
              <Sidebar />
              <main style={MAIN}>{ready && <RouteSwitcher requiresToken={() => true} />}</main>
              <ActivitiesRenderer />
            </div>
          </PreviousRouteProvider>
        </BrowserRouter>
      </SnackbarProvider>
    </ThemeProvider>
  );
}

setStore(store);
request('/config', {}, false, false).then(config => {
  const clusters = Object.fromEntries(config.clusters.map(cluster => [cluster.name, cluster]));
  store.dispatch(setConfig({ ...config, clusters }));
});
createRoot(document.getElementById('root')).render(
  <Provider store={store}>
    <QueryClientProvider client={queryClient}>
      <I18nextProvider i18n={i18n}>
        <Page />
      </I18nextProvider>
    </QueryClientProvider>
  </Provider>
);
